"""A loop in a group: it begins once all it reads is there, and what reads of any of its steps waits for its last round.

in ──> a ══> b ══> c          in  a  b  c                      b's reader could begin behind b; but the driver
5 s    ^     ║     │          ├5┼─10┼1┼──90──┤                 calls a, b, c again and again until the loop
       └─────║─────┘                         ├──40──┤ out      has ended, and hands on the rows of the last round
             ╚═══> out
"""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.model.graph import build_graph
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.planner import plan
from tests.plan.drawn import drawn, standalone

LOOP = drawn(
    "in -- b; a == b; b == c; c -- a; b == out",
    **{"in": {"runtime_s": 5.0}},
    a={"repeat": True, "runtime_s": 10.0},
    b={"repeat": True, "runtime_s": 1.0},
    c={"repeat": True, "runtime_s": 90.0},
    out={"runtime_s": 40.0},
)
CLUSTER = standalone(8, application_start_s=0.0)


def test_what_reads_of_a_loop_begins_behind_all_of_it() -> None:
    group = plan(LOOP, CLUSTER).groups[0]
    assert group.begins == {"in": 0.0, "a": 5.0, "b": 15.0, "c": 16.0, "out": 106.0}
    assert group.time.compute == 146.0


def test_a_plan_that_begins_it_earlier_is_refused() -> None:
    made = plan(LOOP, CLUSTER)
    group = made.groups[0]
    early = replace(group, begins={**group.begins, "out": 16.0})
    assert [found.rule for found in check(replace(made, groups=(early,)), LOOP, CLUSTER)] == ["times"]


def test_followers_of_a_loop() -> None:
    graph = build_graph(LOOP)
    behind = {name: {graph.ids[after] for after in graph.followers[node]} for name, node in graph.index.items()}
    assert behind == {"in": {"a", "b", "c"}, "a": {"b", "out"}, "b": {"c", "out"}, "c": {"a", "out"}, "out": set()}
