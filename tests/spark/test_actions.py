"""Which statements of ``spark.sql`` are rows that are not there yet, and which execute."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.spark.session.actions import is_query

QUERIES = (
    "select 1 as n",
    "-- What is sold\n  -- by whom\nselect 1 as n",
    "/* of\n all shops */ SELECT 1 as n",
    "--\n/**//* twice */\r\n\twith a as (select 1 as n) select n from a",
    "(select 1 as n)",
    "values (1)",
    "from values (1) as t(n) select n",
    "select 'insert into' as n",
    "/* insert */ with a as (select 1 as n) /* no more */ select n from a",
    "-- a \\\nselect still of the comment\nselect 1 as n",
)
EXECUTE = (
    "create or replace temporary view numbers as select 1 as n",
    "-- select\ninsert into numbers select 1",
    "/* a */ insert into numbers select 1 /* b */ select 2",
    "with a as (select 1 as n) insert into numbers select n from a",
    "from values (1) as t(n) insert into numbers select n",
    "-- a \\\nselect\ninsert into numbers select 1",
    "/* a /* of another */ select */ insert into numbers select 1",
    "cache table numbers as select 1",
    "",
    "-- nothing but a comment",
)


@pytest.mark.parametrize("statement", QUERIES)
def test_rows_that_are_not_there_yet(spark: SparkSession, statement: str) -> None:
    assert is_query(statement)
    assert len(spark.sql(statement).columns) == 1, "Spark takes it for a query, too"


@pytest.mark.parametrize("statement", EXECUTE)
def test_what_executes(statement: str) -> None:
    assert not is_query(statement)
