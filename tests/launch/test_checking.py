"""What is submitted against the plan: right as it is made, for every manager; where broken, told by its setting."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.checking import Submitted, check_sent, check_submitted
from airflow_dagsched.launch.escalation.levels import LEVELS
from airflow_dagsched.launch.managers.kubernetes.submit import TEMPLATE
from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.launch.managers.standalone.tokens import Offer
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from tests.plan.drawn import clusters, dataflows, drawn

MANAGERS = ("local", "standalone", "yarn", "kubernetes")


def on(manager: str, cluster: Cluster) -> Cluster:
    """The same workers, with tokens; of a local application the first alone."""
    workers = tuple(replace(worker, tokens=Offer(at, 8).tokens) for at, worker in enumerate(cluster.workers, 1))
    return replace(cluster, manager=manager, workers=workers[:1] if manager == "local" else workers)


def submit(
    flow: Dataflow, cluster: Cluster, told: Settings = DEFAULTS, *, factor: int = 1, exact: bool = True
) -> Submitted:
    """The first group, as a launch submits it."""
    group = plan(flow, cluster, told).groups[0]
    made = make_submission(group, cluster, factor, exact=exact, settings=told)
    pod = made.files.get(TEMPLATE, "")
    return Submitted(group, cluster, told, made.conf, exact=exact, memory_factor=factor, pod_template=pod)


@settings(max_examples=60, deadline=None)
@given(
    dataflows(most=6, tasks=False),
    clusters(),
    st.sampled_from(MANAGERS),
    st.sampled_from([level.memory_factor for level in LEVELS]),
    st.booleans(),
    st.sampled_from([DEFAULTS, Settings(padding_fraction=0.4, padding_min_mb=700)]),
)
def test_what_is_made_of_a_plan_is_as_planned(
    flow: Dataflow, cluster: Cluster, manager: str, factor: int, exact: bool, told: Settings
) -> None:
    try:
        made = submit(flow, on(manager, cluster), told, factor=factor, exact=exact)
    except DoesNotFit:
        assume(False)
        raise
    assert check_submitted(made) == ()


def two_of_four(manager: str) -> Submitted:
    """1 core and 1000 + 384 MiB on each of w2 and w4; the local one has both on the only worker."""
    workers = tuple(
        Worker(id=f"w{at}", host=f"h{at}", cores=4, memory_mb=8000, tokens=Offer(at, 8).tokens) for at in range(1, 5)
    )
    resident = {"memory_mb": 1000, "mode": "streaming"}
    pins = ({}, {}) if manager == "local" else ({"pinned": ("w2",)}, {"pinned": ("w4",)})
    flow = drawn("a == b", a={**resident, **pins[0]}, b={**resident, **pins[1]})
    return submit(flow, on(manager, Cluster(manager="standalone", workers=workers)))


MUTATIONS: list[tuple[str, str, str | None]] = [
    ("local", "spark.driver.memory", "900m"),
    ("local", "spark.driver.memory", "999g"),
    ("standalone", "spark.executor.cores", "2"),
    ("standalone", "spark.cores.max", "4"),
    ("standalone", "spark.executor.memory", "1383m"),
    ("standalone", "spark.executor.memory", "2768m"),
    ("standalone", "spark.driver.memory", "2048m"),
    ("standalone", "spark.dynamicAllocation.enabled", "true"),
    ("standalone", "spark.executor.resource.not_1.amount", None),
    ("standalone", "spark.executor.resource.not_2.amount", "1"),
    ("yarn", "spark.executor.instances", "3"),
    ("yarn", "spark.executor.memory", "1384m"),
    ("yarn", "spark.executor.memoryOverhead", "100m"),
    ("yarn", "spark.yarn.exclude.nodes", "h1"),
    ("yarn", "spark.yarn.exclude.nodes", "h1,h2,h3"),
    ("yarn", "spark.yarn.exclude.nodes", None),
    ("kubernetes", "spark.executor.instances", None),
    ("kubernetes", "spark.executor.cores", "2"),
]


@pytest.mark.parametrize(("manager", "name", "value"), MUTATIONS)
def test_one_setting_that_is_otherwise_is_told_by_its_name(manager: str, name: str, value: str | None) -> None:
    made = two_of_four(manager)
    conf = {key: text for key, text in made.conf.items() if key != name} | ({} if value is None else {name: value})
    found = check_submitted(replace(made, conf=conf))
    assert found
    assert all(name.startswith(one.subject) for one in found)
    assert not any(value in one.message for one in found if value and not value.isdecimal()), "values may be secret"
    # What the author says is the author's word.
    assert check_submitted(replace(made, conf=conf, author=frozenset({name}))) == () or ".resource" in name


@pytest.mark.parametrize(("each", "most", "broken"), [("3", "3", 0), ("3", "2", 1), ("2", "2", 0), ("2", "4", 1)])
def test_a_master_grants_whole_executors_of_the_author_s_cores(each: str, most: str, broken: int) -> None:
    """Two cores are planned: one executor of 3 needs as many, or none would ever start."""
    made = two_of_four("standalone")
    conf = {**made.conf, "spark.executor.cores": each, "spark.cores.max": most}
    found = check_submitted(replace(made, conf=conf, author=frozenset({"spark.executor.cores"})))
    assert [one.subject for one in found] == ["spark.cores.max"] * broken


@pytest.mark.parametrize("hosts", [["h2"], ["h2", "h3", "h4"], []])
def test_pods_are_kept_on_the_planned_nodes(hosts: list[str]) -> None:
    made = two_of_four("kubernetes")
    pod: dict[str, Any] = json.loads(made.pod_template)
    assert check_submitted(made) == ()
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] = hosts
    (found,) = check_submitted(replace(made, pod_template=json.dumps(pod)))
    assert found.subject == TEMPLATE


def test_padding_is_undone_as_it_was_done() -> None:
    """1000 MiB and 40% planned: the heap is 1000 again, not what 10% would leave."""
    workers = (Worker(id="w1", host="h1", cores=4, memory_mb=8000),)
    told = Settings(padding_fraction=0.4, padding_min_mb=0)
    made = submit(drawn("a", a={"memory_mb": 1000}), Cluster(manager="yarn", workers=workers), told)
    assert (made.conf["spark.executor.memory"], made.conf["spark.executor.memoryOverhead"]) == ("1000m", "400m")
    assert check_submitted(made) == ()
    swallowed = {**made.conf, "spark.executor.memory": "1272m", "spark.executor.memoryOverhead": "128m"}
    assert [one.subject for one in check_submitted(replace(made, conf=swallowed))] == ["spark.executor.memoryOverhead"]


def test_the_driver_is_told_the_plan_s_list_and_slots() -> None:
    group = two_of_four("standalone").group
    assert check_sent(group, group.steps, group.steps, group.slots) == ()
    for order, slots, broken in (
        (group.steps[::-1], group.slots, ["order"]),
        (group.steps[:1], group.slots, ["order", "order"]),
        (group.steps, group.slots + 1, ["slots"]),
    ):
        assert [one.subject for one in check_sent(group, group.steps, order, slots)] == broken
