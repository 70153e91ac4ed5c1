"""Rules of a dataflow and a cluster: each broken one is named with its place."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step, Task
from airflow_dagsched.model.validate import validate_cluster, validate_dataflow
from tests.plan.drawn import drawn

A, B = Step(id="a"), Step(id="b")
REPEAT = {"repeat": True}


@pytest.mark.parametrize(
    ("fields", "field", "rule"),
    [
        ({"steps": (A, A)}, "steps[1].id", "id 'a' is taken by steps[0].id"),
        ({"steps": (A,), "tasks": (Task(id="a"),)}, "tasks[0].id", "id 'a' is taken by steps[0].id"),
        ({"steps": (A,), "channels": (Channel(src="a", dst="x"),)}, "channels[0].dst", "no step is called 'x'"),
        (
            {"steps": (A,), "tasks": (Task(id="t"),), "channels": (Channel(src="t", dst="a"),)},
            "channels[0].src",
            "'t' is an ordinary task: a channel joins two steps (use dependencies for other edges)",
        ),
        ({"steps": (A,), "dependencies": (("a", "x"),)}, "dependencies[0][1]", "no step or task is called 'x'"),
        (
            {"steps": (A,), "dependencies": (("a", "a"),)},
            "",
            "cycle a -> a: only steps that are all marked repeat may form one",
        ),
    ],
)
def test_a_broken_rule_is_named_with_its_place(fields: dict[str, Any], field: str, rule: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        validate_dataflow(Dataflow(name="n", **fields), "flow.json")
    assert (refused.value.where, refused.value.field, refused.value.rule) == ("flow.json", field, rule)


@pytest.mark.parametrize(
    ("flow", "path"),
    [
        (drawn("a == b; b == a"), "a -> b -> a"),
        (drawn("z == a; a == b; b == c; c == a; b == d"), "a -> b -> c -> a"),
        (drawn("a == b; b -- a", a=REPEAT), "b -> a -> b"),
        (drawn("a -- t; t -- a", tasks="t", a=REPEAT), "t -> a -> t"),
    ],
)
def test_a_cycle_that_does_not_repeat_is_refused_with_its_path(flow: Dataflow, path: str) -> None:
    with pytest.raises(InvalidInput, match=f"cycle {path}: only steps"):
        validate_dataflow(flow)


@pytest.mark.parametrize("edges", ["a == b; b == a", "a == a; a == b", "a ~~ b; b -- c; c == a"])
def test_steps_that_all_repeat_may_form_a_cycle(edges: str) -> None:
    flow = drawn(edges, a=REPEAT, b=REPEAT, c=REPEAT)
    assert validate_dataflow(flow) == flow


def test_steps_that_repeat_together_share_their_settings() -> None:
    flow = drawn("a == b; b == a", a={**REPEAT, "application": {"m": 1}}, b=REPEAT)
    with pytest.raises(InvalidInput, match="steps 'a' and 'b' repeat together but differ in application settings m"):
        validate_dataflow(flow)


@pytest.mark.parametrize("other", [True, 1.0, None])
def test_settings_are_told_apart_as_they_are_written(other: object) -> None:
    flow = drawn("a == b; b == a", a={**REPEAT, "application": {"m": 1}}, b={**REPEAT, "application": {"m": other}})
    with pytest.raises(InvalidInput, match="differ in application settings m"):
        validate_dataflow(flow)


def test_steps_that_repeat_together_are_of_one_pool() -> None:
    flow = drawn("a == b; b == a", a={**REPEAT, "pool": "p"}, b=REPEAT)
    with pytest.raises(InvalidInput, match="steps 'a' and 'b' repeat together but are of the pools 'p' and ''"):
        validate_dataflow(flow)


def test_workers_have_unique_ids_and_a_local_cluster_has_one() -> None:
    worker = Worker(id="w", host="h", cores=1, memory_mb=1)
    with pytest.raises(InvalidInput, match=r"c.json: workers\[1\].id: id 'w' is taken"):
        validate_cluster(Cluster(manager="standalone", workers=(worker, worker)), "c.json")
    with pytest.raises(InvalidInput, match="exactly one worker, not 0"):
        validate_cluster(Cluster(manager="local"))


def test_the_error_names_the_dataflow_where_there_is_no_file() -> None:
    with pytest.raises(InvalidInput, match="dataflow 'n': steps"):
        validate_dataflow(Dataflow(name="n", steps=(A, B, A)))
