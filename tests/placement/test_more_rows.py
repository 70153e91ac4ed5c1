"""Further answers in the form of the rows, in short: name(parallelism) on so many workers -> instances of each."""

from __future__ import annotations

import re
from typing import Any

import pytest

from airflow_dagsched.errors import DagschedError
from tests.placement.rows import Row, contents, placed

CAP = "twister2.max.task.instances.per.worker"
ODD = "twister2.task.instance.odd.parallelism"
KEY = "twister2.taskscheduler."


def row(scheduler: str, tasks: str, workers: Any, edges: str = "", **more: Any) -> Row:
    """``tasks`` as in ``"a(2) b(3)"``, ``edges`` as in ``"a>b b>c"``; workers as a number or a list."""
    found = [{"name": name, "parallelism": int(count)} for name, count in re.findall(r"(\w+)\((\d+)\)", tasks)]
    for task in found:
        task["config"] = more.get("sizes", {}).get(task["name"], {})
    graph = {"name": "g", "mode": more.get("mode", "STREAMING"), "tasks": found}
    graph["edges"] = [edge.split(">") for edge in edges.split()]
    graph["graph_constraints"] = {CAP: str(more["cap"])} if "cap" in more else {}
    if "odd" in more:
        graph["node_constraints"] = {task: {ODD: str(count)} for task, count in more["odd"].items()}
    ids = [{"id": at} for at in range(workers)] if isinstance(workers, int) else workers
    config = {KEY + key: value for key, value in more.get("config", {}).items()} | more.get("plain", {})
    return {"scheduler": scheduler, "input": {"graphs": [graph], "workers": ids, "config": config}}


def counts(made: Row, *, compatible: bool = False) -> list[int]:
    return [len(held) for held in contents(placed(made, compatible=compatible)[0]).values()]


RR, FF, DLS, RRB, DLB = (
    "roundrobin_streaming",
    "firstfit_streaming",
    "datalocality_streaming",
    "roundrobin_batch",
    "datalocality_batch",
)
INPUT = {"dinput": "d", "filesys": "local"}
NO_PADDING = {"container.padding.percentage": 0}


@pytest.mark.parametrize(
    ("made", "wanted", "upstream"),
    [
        pytest.param(row(RR, "t1(4) t2(4)", 2), [4, 4], [4, 4], id="two by two"),
        pytest.param(row(RR, "source(16) sink(16)", 2, cap=16), [16, 16], [16, 16], id="cap 16"),
        pytest.param(row(RR, "a(16) b(16) c(16)", 2, cap=24), [24, 24], [24, 24], id="cap 24 over all tasks"),
        pytest.param(row(RR, "source(16) sink(16)", 2, cap=1), None, [16, 16], id="cap 1"),
        pytest.param(row(RR, "a(3) b(3) c(3)", 2), [5, 4], [6, 3], id="odd ones carry the turn on"),
        pytest.param(row(RR, "a(5) b(5)", 2, cap=3, odd={"a": 3, "b": 3}), [3, 3], [4, 2], id="odd parallelism"),
        pytest.param(row(RR, "a(5) b(5)", 2, odd={"a": 2, "b": 2}), [2, 2], None, id="no cap: the default of 2"),
        pytest.param(row(FF, "t(1)", 2, sizes={"t": {"Ram": 2000}}), None, None, id="larger than a container"),
        pytest.param(
            row(
                FF,
                "small(3) big(2)",
                2,
                sizes={"small": {"Ram": 256}, "big": {"Ram": 768}},
                config={"task.instances": 4, **NO_PADDING},
            ),
            [4, 1],
            [4, 1],
            id="the largest first",
        ),
        pytest.param(row(DLS, "source(3) sink(2)", 2, plain=INPUT), None, None, id="five above two by two"),
        pytest.param(row(DLS, "a(10) b(10) c(10)", 3, cap=10, plain=INPUT), [10, 10, 10], [10, 10, 10], id="by task"),
        pytest.param(
            row(
                DLS,
                "a(2)",
                [{"id": 0, "bandwidth": 1000.0, "latency": 0.1}, {"id": 1, "bandwidth": 10.0, "latency": 0.2}],
                plain=INPUT,
            ),
            [2],
            [0, 2],
            id="the fast one, upstream the slow one",
        ),
        pytest.param(row(RRB, "a(2) b(2)", 2, "a>b", cap=4, mode="BATCH"), [2, 2], [4, 4], id="phantoms"),
        pytest.param(row(RRB, "s(16) t(16) u(16)", 2, "s>t t>u", cap=8, mode="BATCH"), [24, 24], [24, 24], id="cap 8"),
        pytest.param(row(RRB, "A(1) B(1) D(1)", 1, "A>B B>D A>D", mode="BATCH"), [3], [3], id="a shortcut"),
        pytest.param(row(RRB, "S1(1) S2(1) C(1)", 1, "S1>C S2>C", mode="BATCH"), [3], [3], id="two sources"),
        pytest.param(
            row("TaskScheduler(dispatcher)", "a(2) b(2)", 2, config={"streaming": "firstfit"}),
            [2, 2],
            [2, 2],
            id="the mode's name",
        ),
        pytest.param(row("batchscheduler", "a(16) b(16) c(16)", 2, cap=24), [24, 24], [24, 24], id="batch scheduler"),
    ],
)
def test_what_is_wanted_and_what_upstream_does(made: Row, wanted: list[int] | None, upstream: list[int] | None) -> None:
    for compatible, expected in ((False, wanted), (True, upstream)):
        if expected is None:
            with pytest.raises(DagschedError):
                placed(made, compatible=compatible)
        else:
            assert counts(made, compatible=compatible) == expected


def test_a_policy_may_be_called_again() -> None:
    made = row(FF, "t1(2) t2(2)", 2)
    assert placed(made, compatible=False) == placed(made, compatible=False)


def test_the_mode_name_selects_first_fit() -> None:
    """Each worker's logical container holds the two instances of one task; in turn they would be spread."""
    made = row("TaskScheduler(dispatcher)", "a(2) b(2)", 2, config={"streaming": "firstfit"})
    assert contents(placed(made, compatible=False)[0])["0"] == [["a", 0, 0], ["a", 0, 1]]


def test_a_collector_and_its_receptor_are_equal() -> None:
    made = row("batchscheduler", "source(4) sink(2)", 2, "source>sink")
    tasks = made["input"]["graphs"][0]["tasks"]
    tasks[0]["collector"] = tasks[1]["receptor"] = "points"
    with pytest.raises(DagschedError, match="parallelism 4 and 'sink' with 2"):
        placed(made, compatible=False)


def test_data_locality_places_what_a_task_has_and_weighs_what_its_constraint_says() -> None:
    """a(2) said to have 5: above a cap of 2 on two workers; said to have 1, two are placed."""
    with pytest.raises(DagschedError, match="cap of 2 per container needed 5"):
        placed(row(DLS, "a(2)", 2, cap=2, odd={"a": 5}, plain=INPUT), compatible=True)
    assert counts(row(DLS, "a(2)", 2, cap=2, odd={"a": 1}, plain=INPUT), compatible=True) == [2, 0]


def test_data_locality_fails_on_a_task_that_constraints_leave_out() -> None:
    with pytest.raises(DagschedError, match="says nothing of 'b'"):
        placed(row(DLS, "a(1) b(1)", 2, cap=2, odd={"a": 1}, plain=INPUT), compatible=True)


def test_constraints_of_a_graph_without_a_cap_let_nothing_in() -> None:
    made = row(DLS, "a(1)", 2, plain=INPUT)
    made["input"]["graphs"][0]["graph_constraints"] = {"twister2.other": "1"}
    with pytest.raises(DagschedError, match="cap of 0 per container needed 1"):
        placed(made, compatible=True)


def test_children_stand_as_their_edges_were_drawn() -> None:
    """A ──> D is drawn first, so D comes before B, from which it reads."""
    made = row(RRB, "A(1) B(1) D(1)", 1, "A>D A>B B>D", mode="BATCH")
    assert contents(placed(made, compatible=True)[0])["0"] == [["A", 0, 0], ["D", 1, 0], ["B", 2, 0]]
