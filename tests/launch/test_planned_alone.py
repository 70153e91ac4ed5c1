"""A group of a run that is planned by itself, since others find no room: called as in the run, and accepted."""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen, plan_on_free_cluster
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.problem.run import FixedGroup
from tests.plan.drawn import drawn, standalone


def test_it_keeps_the_name_it_has_in_the_run() -> None:
    """b needs more disk than the worker that it is pinned to has, so the run does not fit as it is."""
    flow = drawn("a ~~ b", a={"disk_mb": 10}, b={"disk_mb": 50, "pinned": ("w1",)})
    cluster = standalone(4, 4)
    cluster = replace(
        cluster, workers=tuple(replace(worker, disk_mb=30 * at) for at, worker in enumerate(cluster.workers, 1))
    )
    groups = tuple(FixedGroup(f"launch_{step}", (step,), "a launch task of its own") for step in "ab")
    chosen = plan_on_free_cluster(Facts(dataflow=flow, cluster=cluster, groups=groups), ("a",))
    assert isinstance(chosen, Chosen)
    assert chosen.group.id == "launch_a"
    made = chosen.planned
    assert check(made.plan, made.dataflow, made.cluster, made.settings) == ()
