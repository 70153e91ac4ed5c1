"""A group of a plan as Spark settings: exact for each cluster manager."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput, LaunchRefused
from airflow_dagsched.launch.escalation.levels import LEVELS
from airflow_dagsched.launch.managers.declared import merge_live_and_declared
from airflow_dagsched.launch.managers.executors import SMALLEST_HEAP_MB, Submission, size_executors, split_memory
from airflow_dagsched.launch.managers.kubernetes.submit import REQUIRED, TEMPLATE, make_pod_template
from airflow_dagsched.launch.managers.settings import COMMON, make_submission
from airflow_dagsched.launch.managers.short_java import LIGHT_COMPILER, LIGHT_LOCAL
from airflow_dagsched.launch.managers.standalone.submit import check_offered
from airflow_dagsched.launch.managers.standalone.tokens import Offer, format_resources, format_worker_properties
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.plan.needs import measure_padding
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS
from tests.plan.drawn import drawn


def cluster(manager: str, count: int = 4, **fields: Any) -> Cluster:
    workers = (
        Worker(id=f"w{at}", host=f"h{at}", cores=4, memory_mb=8000, tokens=Offer(at, 8).tokens, **fields)
        for at in range(1, count + 1)
    )
    return Cluster(manager=manager, workers=tuple(workers))  # type: ignore[arg-type]


def settings(manager: str, **fields: Any) -> Submission:
    where = cluster(manager, **fields)
    found = make_submission(_pinned(where), where)
    assert found.conf.items() >= COMMON.items()
    assert found.conf["spark.driver.memory"] == "1024m"
    return found


def _pinned(where: Cluster) -> Group:
    """A container of 1 core and 1000 + 384 MiB on each of w2 and w4."""
    flow = drawn(
        "a == b",
        a={"pinned": ("w2",), "memory_mb": 1000, "mode": "streaming"},
        b={"pinned": ("w4",), "memory_mb": 1000, "mode": "streaming"},
    )
    return plan(flow, where).groups[0]


def planned(found: Submission) -> dict[str, str]:
    """Without what is common to all."""
    return {
        name: value
        for name, value in found.conf.items()
        if name not in COMMON and "driver" not in name and "JavaOptions" not in name
    }


def test_standalone_asks_for_what_was_planned_on_exactly_these_workers() -> None:
    assert planned(settings("standalone")) == {
        "spark.dynamicAllocation.enabled": "false",
        "spark.executor.cores": "1",
        "spark.executor.memory": "1384m",
        "spark.cores.max": "2",
        "spark.executor.resource.not_1.amount": "1",
        "spark.executor.resource.not_3.amount": "1",
    }


def test_yarn_excludes_the_other_nodes() -> None:
    assert planned(settings("yarn")) == {
        "spark.dynamicAllocation.enabled": "false",
        "spark.executor.cores": "1",
        "spark.executor.memory": "1000m",
        "spark.executor.memoryOverhead": "384m",
        "spark.executor.instances": "2",
        "spark.yarn.exclude.nodes": "h1,h3",
    }


@pytest.mark.parametrize("manager", ["standalone", "yarn"])
def test_workers_that_are_not_ours_are_kept_out(manager: str) -> None:
    """Declared are two of four that are alive; the plan is for both of them."""
    live = cluster(manager)
    where = merge_live_and_declared(live, replace(live, workers=(live.workers[1], live.workers[3])))
    group = plan(drawn("a", a={"parallelism": 8, "memory_mb": 100}), where).groups[0]
    conf = make_submission(group, where).conf
    assert conf.get("spark.yarn.exclude.nodes", "h1,h3") == "h1,h3"
    assert {name for name in conf if "resource" in name} == (
        {f"spark.executor.resource.not_{at}.amount" for at in (1, 3)} if manager == "standalone" else set()
    )


def test_yarn_asks_for_the_label_of_its_nodes() -> None:
    found = settings("yarn", tags={"label": "gpu"})
    assert found.conf["spark.yarn.executor.nodeLabelExpression"] == "gpu"


def test_yarn_never_excludes_all_nodes() -> None:
    """Nor a host on which another of its node managers was chosen."""
    alone = cluster("yarn", 1)
    group = plan(drawn("a"), alone).groups[0]
    assert "spark.yarn.exclude.nodes" not in make_submission(group, alone).conf
    shared = replace(cluster("yarn", 2), workers=tuple(replace(w, host="h") for w in cluster("yarn", 2).workers))
    group = plan(drawn("a", a={"pinned": ("w1",)}), shared).groups[0]
    assert "spark.yarn.exclude.nodes" not in make_submission(group, shared).conf


def test_kubernetes_names_its_nodes_in_a_pod_template() -> None:
    found = settings("kubernetes")
    assert planned(found) == {
        "spark.dynamicAllocation.enabled": "false",
        "spark.executor.cores": "1",
        "spark.executor.memory": "1000m",
        "spark.executor.memoryOverhead": "384m",
        "spark.executor.instances": "2",
    }
    on_hosts = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["h2", "h4"]}
    assert json.loads(found.files[TEMPLATE]) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [on_hosts]}]}}}},
    }


def test_the_author_s_own_template_stays() -> None:
    """Terms are alternatives: each gets the nodes."""
    zones = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"]
    spec = {"affinity": {"podAffinity": {"x": 1}, "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": zones}}}}
    made = make_pod_template({"metadata": {"labels": {"team": "sales"}}, "spec": {**spec, "priority": 1}}, ["h2"])
    terms = made["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert [[rule["key"] for rule in term["matchExpressions"]] for term in terms] == [
        ["zone", "kubernetes.io/hostname"],
        ["zone", "kubernetes.io/hostname"],
    ]
    assert (made["metadata"], made["spec"]["priority"]) == ({"labels": {"team": "sales"}}, 1)
    assert made["spec"]["affinity"]["podAffinity"] == {"x": 1}


@pytest.mark.parametrize("manager", ["standalone", "yarn", "kubernetes"])
def test_where_all_is_busy_any_worker_will_do(manager: str) -> None:
    """Whose executors are free first, nobody knows: no worker is excluded."""
    where = cluster(manager)
    found = make_submission(_pinned(where), where, exact=False)
    assert not [name for name in found.conf if "resource" in name or "exclude" in name]
    assert "affinity" not in found.files.get(TEMPLATE, "")


def test_local_is_one_heap() -> None:
    where = Cluster(manager="local", workers=(Worker(id="here", host="h", cores=4, memory_mb=8000),))
    group = plan(drawn("a", a={"memory_mb": 3000}), where).groups[0]
    light = {"spark.driver.defaultJavaOptions": LIGHT_LOCAL}
    assert make_submission(group, where, LEVELS[1].memory_factor).conf == {
        **COMMON,
        **light,
        "spark.driver.memory": "6768m",
        "spark.python.daemon.module": "airflow_dagsched.spark.worker_daemon",
    }


@pytest.mark.parametrize("manager", ["standalone", "yarn", "kubernetes"])
def test_executors_compile_as_the_driver_does(manager: str) -> None:
    """Quickly in a short application, thoroughly in a long one."""
    where = cluster(manager)
    names = {"spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"}
    short = make_submission(plan(drawn("a", a={"runtime_s": 40.0}), where).groups[0], where).conf
    assert {name: short.get(name) for name in names} == dict.fromkeys(names, LIGHT_COMPILER)
    long = make_submission(plan(drawn("a", a={"runtime_s": 9000.0}), where).groups[0], where).conf
    assert not names & long.keys()


def test_a_long_local_application_is_compiled_thoroughly() -> None:
    """What it runs for minutes earns that back."""
    where = Cluster(manager="local", workers=(Worker(id="here", host="h", cores=4, memory_mb=8000),))
    group = plan(drawn("a", a={"runtime_s": 4000.0}), where).groups[0]
    assert "spark.driver.defaultJavaOptions" not in make_submission(group, where).conf


def test_more_memory_after_a_failure_but_never_more_than_a_worker_has() -> None:
    """1384, then 2768; 5536 MiB are on no worker of 4000."""
    where = replace(cluster("standalone"), workers=tuple(replace(w, memory_mb=4000) for w in cluster("yarn").workers))
    asked = [size_executors(_pinned(where), where, level.memory_factor).memory_mb for level in LEVELS]
    assert asked == [1384, 2768, 4000, 4000]


@given(st.integers(SMALLEST_HEAP_MB, 10**7))
def test_heap_and_overhead_undo_the_padding(need_mb: int) -> None:
    added = measure_padding(need_mb, DEFAULTS)
    assert split_memory(need_mb + added, DEFAULTS) == (need_mb, added)


def test_a_heap_that_spark_would_refuse_is_made_larger() -> None:
    assert split_memory(10 + 384, DEFAULTS) == (SMALLEST_HEAP_MB, 384)


def test_a_resource_that_nobody_offers_is_refused_before_it_is_waited_for() -> None:
    workers = cluster("standalone", 2).workers
    check_offered({"spark.executor.resource.not_7.amount": "1", "spark.cores.max": "4"}, workers)
    with pytest.raises(DoesNotFit, match=r"'not_9' of a worker needed 1, available 0"):
        check_offered({"spark.executor.resource.not_9.amount": "1"}, workers)
    with pytest.raises(DoesNotFit, match="workers that offer all of not_1, not_2 needed 1"):
        check_offered({f"spark.executor.resource.not_{at}.amount": "1" for at in (1, 2)}, workers)


def test_a_resource_that_others_hold_is_refused_for_now() -> None:
    """Free of the two GPUs of each worker: 0 and 1."""
    workers = [
        replace(worker, resources={"gpu": 2}, free=Free(resources={"gpu": at}))
        for at, worker in enumerate(cluster("standalone", 2).workers)
    ]
    check_offered({"spark.executor.resource.gpu.amount": "1"}, workers)
    with pytest.raises(LaunchRefused, match=r"'gpu' .* needed 2, available 1: others hold the rest") as refused:
        check_offered({"spark.executor.resource.gpu.amount": "2"}, workers)
    assert refused.value.passing
    with pytest.raises(DoesNotFit, match="needed 3, available 2"):
        check_offered({"spark.executor.resource.gpu.amount": "3"}, workers)


@pytest.mark.parametrize("amount", ["x", "-1", "0.5", ""])
def test_an_amount_that_is_none(amount: str) -> None:
    with pytest.raises(InvalidInput, match=f"spark.executor.resource.gpu.amount: {amount!r} is no whole number"):
        check_offered({"spark.executor.resource.gpu.amount": amount}, cluster("standalone", 2).workers)


def test_what_a_worker_offers() -> None:
    offer = Offer(2, slots=3, executors=2)
    assert json.loads(format_resources(offer)) == [
        {"id": {"componentName": "spark.worker", "resourceName": "not_1"}, "addresses": ["0", "1"]},
        {"id": {"componentName": "spark.worker", "resourceName": "not_3"}, "addresses": ["0", "1"]},
    ]
    assert format_worker_properties(offer, "/etc/r.json").splitlines() == [
        "spark.worker.resourcesFile /etc/r.json",
        "spark.worker.resource.not_1.amount 2",
        "spark.worker.resource.not_3.amount 2",
    ]


@pytest.mark.parametrize("offer", [{"slot": 0}, {"slot": 33}, {"slot": 1, "executors": 0}])
def test_an_offer_that_is_none(offer: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="must be from 1 to"):
        Offer(**offer)
