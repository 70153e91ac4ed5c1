"""Known answers of Twister2's schedulers, row by row: what the compatible mode reproduces, what the default gives.

``DAGSCHED_CASES=folder`` runs the same tests on another ``twister2.json`` of the same form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policies.built_in import RoundRobin
from airflow_dagsched.placement.reproductions.twister2.connected_dataflows import Part, schedule_dependent
from airflow_dagsched.placement.reproductions.twister2.data_locality import compute_distance
from airflow_dagsched.placement.settings import SPARK
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan
from tests.placement.rows import Row, contents, outcomes, placed, rows, scheduler_of, sizes
from tests.placement.wanted import wanted

pytestmark = pytest.mark.cases

NO_STATE = "needs what an earlier call left behind: a policy keeps no state"
OTHER_PARTS = {
    "CS": "groups and spills, not placement",
    "GS": "graph switching, not placement",
    "TR": "re-planning triggers, not placement",
    "FC": "flow control, not placement",
    "T2-OLD": "an older release than the one that is reproduced",
}


def row_ids(part: str) -> list[Any]:
    return [pytest.param(row, id=row["id"]) for row in rows(part)]


def keeps_state(row: Row) -> bool:
    """Whether its outcome depends on earlier calls."""
    thrown = row["upstream_outcome"].get("thrown")
    across = row["scheduler"] == "batchscheduler" and thrown and not row["input"].get("multi_graph_call")
    return bool(
        row["input"].get("keeps_static_state_from_previous_case")
        or row["input"].get("schedule_calls", 1) > 1
        or (across and len(row["input"]["graphs"]) > 1)
    )


@pytest.mark.parametrize("row", row_ids("twister2"))
def test_the_compatible_mode_does_as_upstream(row: Row) -> None:
    if keeps_state(row):
        pytest.skip(NO_STATE)
    if "thrown" in row["upstream_outcome"]:
        with pytest.raises(DagschedError):
            placed(row, compatible=True)
        return
    for plan, outcome in zip(placed(row, compatible=True), outcomes(row), strict=True):
        assert_same(plan, outcome)


def assert_same(plan: TaskSchedulePlan, outcome: Row) -> None:
    found = contents(plan)
    assert Counter(str(len(held)) for held in found.values()) == outcome["size_histogram"]
    assert len(found) == outcome["containers"]
    if "assignments" in outcome:
        assert found == outcome["assignments"]
        for box, size in outcome["container_resources"].items():
            assert sizes(plan)[box] == pytest.approx(size), box
    else:
        first = outcome["assignments_first_three"]
        assert {box: found[box] for box in first} == first
        assert sizes(plan)[next(iter(first))] == pytest.approx(outcome["container_resources_first"])


@pytest.mark.parametrize("row", row_ids("twister2"))
def test_the_default_gives_what_is_wanted(row: Row) -> None:
    if "better" in row:
        wanted(row)
        return
    if "upstream_defect" in row:
        pytest.skip("a defect without a better answer: the compatible mode's alone")
    if "thrown" in row["upstream_outcome"]:
        with pytest.raises(DagschedError):
            placed(row, compatible=False)
        return
    if scheduler_of(row, compatible=False)[0] == "first_fit" and padding_percent(row):
        pytest.skip("upstream adds the percentage as an amount: T2-FF-01 and T2-FF-03 say what is wanted")
    for plan, outcome in zip(placed(row, compatible=False), outcomes(row), strict=True):
        assert_default(plan, outcome, row)


def padding_percent(row: Row) -> float:
    return float(row["input"]["config"].get("twister2.taskscheduler.container.padding.percentage", 1))


def assert_default(plan: TaskSchedulePlan, outcome: Row, row: Row) -> None:
    """Containers with instances as upstream has them; of sizes all but cpu, which it sums from disk."""
    found = contents(plan)
    counted = {size: count for size, count in outcome["size_histogram"].items() if size != "0"}
    assert Counter(str(len(held)) for held in found.values()) == counted
    expected = outcome.get("assignments") or outcome["assignments_first_three"]
    if scheduler_of(row, compatible=False)[0] == "first_fit":
        strip = [sorted((task, index) for task, _, index in held) for held in expected.values()]
        assert [sorted((task, index) for task, _, index in held) for held in found.values()] == strip
        return
    for box, held in expected.items():
        assert found.get(box, []) == held
    resources = outcome.get("container_resources") or {next(iter(expected)): outcome["container_resources_first"]}
    for box, size in resources.items():
        if box in found:
            assert {**sizes(plan)[box], "cpu": 0} == pytest.approx({**size, "cpu": 0})


@pytest.mark.parametrize("row", row_ids("derived"))
def test_derived_rows(row: Row) -> None:
    for prefix, reason in OTHER_PARTS.items():
        if row["id"].startswith(prefix):
            pytest.skip(reason)
    if row["id"].startswith("T2-CDFW"):
        assert_first_workers(row)
    else:
        if not row["id"].startswith("T2-DT"):
            pytest.skip(f"row {row['id']!r} is of no kind that is known here")
        assert compute_distance(*list_network(row["input"])) == pytest.approx(row["expected"])


def list_network(given: Row) -> list[float]:
    """Bandwidth and latency of worker and data node; what the row leaves out is as Twister2's code has it."""
    ours = (f"{end}_{what}" for end in ("worker", "datanode") for what in ("bandwidth_mb_s", "latency_s"))
    theirs = (f"{end}_{what}" for end in ("worker", "datanode") for what in ("bandwidth", "latency"))
    return [given.get(key, getattr(SPARK, name)) for key, name in zip(theirs, ours, strict=True)]


def assert_first_workers(row: Row) -> None:
    """A connected dataflow gets as many workers as it asks for, the first ones."""
    workers, wants = row["input"]["workers"], row["input"]["wants"]
    if str(row["expected"]).startswith("error"):
        with pytest.raises(DagschedError):
            got(workers, wants)
        return
    assert got(workers, wants) == [workers[:count] for count in wants]


def got(workers: list[int], wants: list[int]) -> list[list[int]]:
    """The workers of each of several dataflows of one step, whose instances are dealt to all that it gets."""
    step = Step(id="a", parallelism=max(workers) + 1)
    parts = [Part(Dataflow(name=f"g{at}", steps=(step,)), workers=count) for at, count in enumerate(wants)]

    def place(dataflow: Dataflow, offers: Sequence[Offer], beside: Mapping[str, str]) -> TaskSchedulePlan:
        return RoundRobin().schedule(dataflow, offers, State(), beside=beside)

    plans = schedule_dependent(parts, [Offer(id=str(at), worker=str(at)) for at in workers], place)
    return [sorted({int(worker) for worker in plan.assignment.values()}) for plan in plans]
