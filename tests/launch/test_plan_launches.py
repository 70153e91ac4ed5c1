"""A print on what is free is what launches do there, also where the run as a whole does not fit what is free."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen, free_all, plan_on_free_cluster
from airflow_dagsched.launch.escalation.plan_launches import plan_launches
from airflow_dagsched.launch.escalation.reservations import Reservation, reserve_executors
from airflow_dagsched.launch.managers.executors import size_executors
from airflow_dagsched.launch.planning.facts import Facts, Origin
from airflow_dagsched.launch.planning.plan_run import plan_run
from airflow_dagsched.launch.planning.planned import Planned
from airflow_dagsched.launch.planning.submissions import add_settings
from airflow_dagsched.model.cluster import Cluster, Free
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.grouping.coarsest import find_groups
from airflow_dagsched.plan.problem.run import FixedGroup
from tests.plan.drawn import clusters, dataflows, drawn, standalone

RUN = drawn("a -- c", a={"cores": 2, "isolate": True}, b={"cores": 4, "isolate": True}, c={"isolate": True})


def busy(cluster: Cluster, *free: int) -> Cluster:
    pairs = zip(cluster.workers, free, strict=True)
    return replace(cluster, workers=tuple(replace(worker, free=Free(cores=cores)) for worker, cores in pairs))


def facts_of(flow: Dataflow, cluster: Cluster) -> Facts:
    groups = tuple(FixedGroup(one.id, one.steps, one.reason) for one in find_groups(flow).groups)
    return Facts(dataflow=flow, cluster=cluster, groups=groups, origin=Origin(room="free"))


def list_waiting(made: Planned) -> tuple[str, ...]:
    assert made.plan.facts is not None
    return made.plan.facts.waiting


def test_what_finds_room_begins_and_the_others_wait_behind_it() -> None:
    """
    w1 4 cores, none free    w2 4 cores, 2 free
    a   2 cores              w2, at once
    b   4 cores              on all there is, when a has ended; c behind a
    """
    made = plan_launches(facts_of(RUN, busy(standalone(4, 4), 0, 2)))
    groups = {group.steps[0]: group for group in made.plan.groups}
    assert [box.worker for box in groups["a"].containers] == ["w2"]
    assert groups["a"].start_s == 0
    assert list_waiting(made) == (groups["b"].id,)
    assert min(groups["b"].start_s, groups["c"].start_s) >= groups["a"].end_s
    assert check(made.plan, made.dataflow, made.cluster, made.settings) == ()


@pytest.mark.parametrize(("manager", "excluded"), [("yarn", ""), ("standalone", None)])
def test_what_waits_in_a_manager_s_queue_is_kept_on_no_worker(manager: Any, excluded: str | None) -> None:
    """As its launch asks for it; a Master's queue is not waited in."""
    flow = drawn("b", b={"cores": 4})
    cluster = replace(busy(standalone(4, 4), 3, 0), manager=manager)
    made = plan_launches(facts_of(flow, cluster))
    assert list_waiting(made) == ("launch",)
    printed = add_settings(made).groups[0].settings
    assert "spark.yarn.exclude.nodes" not in printed
    chosen = plan_on_free_cluster(facts_of(flow, cluster), ["b"])
    assert isinstance(chosen, Chosen) == (excluded is not None)
    if isinstance(chosen, Chosen):
        assert add_settings(chosen.planned).groups[0].settings == printed


@settings(max_examples=40, deadline=None)
@given(dataflows(12), clusters(), st.data())
def test_a_print_is_what_launches_do(flow: Dataflow, cluster: Cluster, data: st.DataObject) -> None:
    """Group after group that waits for nobody: beside what was put before it, or in ``waiting``."""
    # Each step for itself, and little that is free: some find room, others do not.
    alone = tuple(replace(step, isolate=True) for step in flow.steps)
    free = [data.draw(st.integers(0, 2)) for _ in cluster.workers]
    facts = facts_of(replace(flow, steps=alone), busy(cluster, *free))
    try:
        made = plan_launches(facts)
    except DoesNotFit:
        return
    assert check(made.plan, made.dataflow, made.cluster, made.settings) == ()
    assert made.plan.facts is not None
    if made.plan.facts.room == "free":
        return  # the run as it is: each launch takes its own group of it
    held: list[Reservation] = []
    put = {group.id: group for group in made.plan.groups}
    # In the order in which the idle cluster would have them choose.
    idle = plan_run(free_all(facts)).plan.groups
    for group in (put[one.id] for one in sorted(idle, key=lambda one: (one.start_s, one.id)) if not one.after):
        found = plan_on_free_cluster(facts, group.steps, held)
        assert isinstance(found, Chosen) == (group.id not in list_waiting(made))
        if isinstance(found, Chosen):
            assert (found.group.containers, found.group.slots) == (group.containers, group.slots)
            asked = size_executors(found.group, found.planned.cluster)
            held.append(reserve_executors(group.id, asked, expires=1.0))
