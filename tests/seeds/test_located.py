"""The documents' worked examples of rows that some workers hold: on a real HDFS, each DataNode on a Spark worker."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.dags.conftest import Play
from tests.seeds.answers import ONE, THREE, TWO, placed
from tests.seeds.conftest import PART_ROWS, Played, Seeds
from tests.seeds.test_launched import held_cores, planned_cores
from tests.testbed.event_log import EventLog

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]


def only(run: Played, flow: str) -> EventLog:
    """The application of a dataflow, which had the executors that its launch had planned."""
    (log,) = run.logs[flow]
    assert held_cores([log]) == planned_cores(run.plan(flow).groups)
    return log


def near(log: EventLog) -> Counter[tuple[str, str]]:
    """How often a task that read rows was on which host, how near to them."""
    return Counter((task.host, task.locality) for task in log.scans if task.rows)


def sum_parts(*parts: int) -> list[dict[str, int]]:
    """What adds up in the files of these numbers."""
    return [{"total": sum(sum(range(part * PART_ROWS, (part + 1) * PART_ROWS)) for part in parts)}]


def test_twister2s_data_locality(lake: Seeds, play: Play) -> None:
    """The nearest worker is filled to its cap, then the next; in turns it is the first two, whoever holds the rows."""
    run = lake.play("twister2_near", play)
    assert {flow: placed(*run.plan(flow).groups) for flow in run.flows} == {
        "near": {THREE: "t1/0 t1/1 t2/0 t2/1"},
        "turns": {ONE: "t1/0 t2/0", TWO: "t1/1 t2/1"},
        "full": {TWO: "t1/0 t1/1", ONE: "t1/2 t1/3 t2/0 t2/1"},
    }
    assert near(only(run, "near")) == {(THREE, "NODE_LOCAL"): 2}
    assert near(only(run, "turns")) == {(ONE, "ANY"): 1, (TWO, "ANY"): 1}
    assert near(only(run, "full")) == {(TWO, "NODE_LOCAL"): 2, (ONE, "ANY"): 2}
    assert run.rows("near") == run.rows("turns") == sum_parts(0, 1)
    assert run.rows("full") == sum_parts(0, 1, 2, 3)


def test_jets_members(lake: Seeds, play: Play) -> None:
    """A query on one key has executors where that key is, and reads it there; nothing left out, others read it."""
    run = lake.play("jet_members", play)
    one, two, whole = (only(run, flow) for flow in ("one", "two", "whole"))
    assert (one.executors, two.executors) == ({THREE}, {ONE, TWO})
    assert near(one) == {(THREE, "NODE_LOCAL"): 1}
    assert near(two) == {(ONE, "NODE_LOCAL"): 1, (TWO, "NODE_LOCAL"): 1}
    assert whole.executors == {ONE, TWO}
    assert {task.locality for task in whole.scans} == {"ANY"}
    rows = {flow: sum(task.rows for log in logs for task in log.scans) for flow, logs in run.logs.items()}
    assert rows == {"one": PART_ROWS, "two": 2 * PART_ROWS, "whole": PART_ROWS}
    assert run.rows("one") == run.rows("whole") == sum_parts(0)
    assert run.rows("two") == sum_parts(0, 1)
