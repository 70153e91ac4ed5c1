"""What a launch learns of its tables' hosts, from a server that plays the NameNode."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from airflow_dagsched.launch.tables import Table
from airflow_dagsched.model.dataflow import Dataflow, Partition, Source
from airflow_dagsched.plan.prune import interval_names
from airflow_dagsched.provider.clusters import Reached
from airflow_dagsched.provider.located import located
from tests.plan.drawn import drawn
from tests.provider.test_webhdfs import ROOT, locations, on, page, said
from tests.testbed.answers import Said, answering

FIRST, SECOND = datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC)
NAMES = interval_names(FIRST, SECOND, "2013-01-01")
SALES = Table("hdfs://lake/t", where="day = interval.start")
STORED = {
    ROOT: said({}),
    on("LISTSTATUS_BATCH"): page(0, ("day=2013-01-01", "DIRECTORY", 0), ("day=2013-01-02", "DIRECTORY", 0)),
    on("LISTSTATUS_BATCH", "/t/day%3D2013-01-01"): page(0, ("a", "FILE", 7)),
    on("GETFILEBLOCKLOCATIONS", "/t/day%3D2013-01-01/a"): locations("w1", "w2"),
}


@pytest.fixture(autouse=True)
def ann(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")


def learned(url: str, *tables: Table) -> Dataflow:
    return located(drawn("a == b"), {"a": tables}, Reached("c", "yarn", extra={"webhdfs": url}), NAMES)


def test_a_declared_table_gets_the_blocks_of_the_run_s_day() -> None:
    """The other day's folder is not even listed."""
    with answering(STORED) as (url, asked):
        found = learned(url, SALES, Table("/local/t"))
    (source,) = found.steps[0].sources
    assert (source.path, source.where) == ("hdfs://lake/t", "day = interval.start")
    (partition,) = source.partitions
    assert (partition.key, [block.hosts for block in partition.blocks]) == ({"day": "2013-01-01"}, [("w1", "w2")])
    assert [one.path for one in asked if "2013-01-02" in one.path] == []


@pytest.mark.parametrize("root", [Said(b"<html>", "text/html"), Said(b"<html>", "text/html", 404)])
def test_who_does_not_answer_is_warned_of_once_and_is_no_reason_to_go_anywhere(
    root: Said, caplog: pytest.LogCaptureFixture
) -> None:
    with answering({ROOT: root}) as (url, asked), caplog.at_level(logging.WARNING):
        found = learned(url, SALES, Table("hdfs://lake/other"))
    assert found == drawn("a == b")
    assert len(asked) == len(caplog.records) == 1
    assert "no preference for the workers that hold hdfs://lake/t: http://127.0.0.1" in caplog.text


def test_a_table_that_is_not_there_yet_is_no_source() -> None:
    gone = said({"RemoteException": {"exception": "FileNotFoundException", "message": "no"}}, status=404)
    with answering({ROOT: said({}), on("LISTSTATUS_BATCH"): gone}) as (url, _):
        assert learned(url, SALES) == drawn("a == b")


def test_what_is_listed_already_stays() -> None:
    flow = drawn("a", a={"sources": (Source(path="hdfs://lake/t", partitions=(Partition(key={"day": 1}),)),)})
    assert located(flow, {"a": (SALES,)}, Reached("c", "yarn"), NAMES) == flow
