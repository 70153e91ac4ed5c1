"""Memory that does not suffice, on real Spark: cut at launch, or tried again with more, and the right rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.dataset
import pytest

from tests.dags.conftest import Play

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]

FILE = Path(__file__).parent / "files" / "scarce.py"


def rows(table: Path) -> list[dict[str, object]]:
    return pyarrow.dataset.dataset(table, format="parquet").to_table().to_pylist()


def test_a_group_too_large_for_the_cluster_is_cut_at_launch(play: Play, home: Path) -> None:
    """A container of two cores, as numbers needs, could hold squares and evens at once: 4 GB of the 3 there are."""
    worker = {"id": "here", "host": "localhost", "cores": 2, "memory_mb": 3000}
    cluster = {"manager": "local", "workers": [worker]}
    connection = {"conn_type": "spark", "host": "local[2]", "extra": {"cluster": cluster}}
    found = play(FILE, dag="cut", AIRFLOW_CONN_SPARK_DEFAULT=json.dumps(connection))
    assert set(found["tasks"].values()) == {"success"}
    launch = found["told"]["cut.launch"]
    assert launch["applications"] == 2
    assert launch["cuts"][0].startswith("cut into 2 applications, one after another: ")
    assert len(rows(home / "tables" / "evens")) == 500


def test_a_step_that_needs_ten_times_what_is_declared_gets_it(play: Play, home: Path) -> None:
    found = play(FILE, dag="hungry")
    assert set(found["tasks"].values()) == {"success"}
    launch = found["told"]["hungry.launch"]
    assert launch["applications"] > 1
    assert launch["cuts"][0].startswith("out of memory: tried again with 2 times the memory")
    assert rows(home / "tables" / "gathered") == [{"count": 40_000_000}]
