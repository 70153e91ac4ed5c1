"""A plan on a real standalone cluster of four workers: executors come up where, and as large as, it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen, plan_on_free_cluster
from airflow_dagsched.launch.escalation.reservations import Reservation, reserve_executors
from airflow_dagsched.launch.managers.executors import Submission, size_executors
from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.launch.managers.standalone.submit import check_offered
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.passes.pin_hosts import count_containers
from airflow_dagsched.plan.problem.run import Policy
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from demo.rest import until
from tests.cluster.submitting import result, start
from tests.plan.drawn import drawn
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]

SECOND, FOURTH = "127.0.0.3", "127.0.0.5"


@pytest.fixture(scope="module")
def started() -> Iterator[StandaloneCluster]:
    with standalone_cluster(workers=4, cores=2, memory_mb=2048, tokens=True) as cluster:
        yield cluster


@pytest.fixture
def hook(started: StandaloneCluster, monkeypatch: pytest.MonkeyPatch) -> PlannerHook:
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", started.connection())
    return PlannerHook("cluster")


def pinned(*hosts: str) -> Dataflow:
    """A resident step of one core and 400 MiB on each of the hosts, joined to the one before."""
    steps = {f"s{at}": {"pinned": (host,), "mode": "streaming", "memory_mb": 400} for at, host in enumerate(hosts)}
    return drawn(" == ".join(steps), **steps)


def chosen_for(flow: Dataflow, hook: PlannerHook, *held: Reservation, policy: Policy | None = None) -> Chosen:
    facts = Facts(dataflow=flow, cluster=hook.cluster(), policy=policy)
    found = plan_on_free_cluster(facts, [step.id for step in flow.steps], held)
    assert isinstance(found, Chosen)
    return found


def settings_of(chosen: Chosen) -> Submission:
    return make_submission(chosen.group, chosen.planned.cluster)


def used(started: StandaloneCluster) -> dict[str, tuple[int, int]]:
    """Host -> cores and MiB taken there now, as the workers' own pages tell."""
    pages = started.workers()
    return {host: (page["coresused"], page["memoryused"]) for host, page in pages.items() if page["coresused"]}


def _two(found: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]] | None:
    return found if len(found) > 1 else None


def test_a_plan_that_names_workers_2_and_4_gets_exactly_these(
    started: StandaloneCluster, hook: PlannerHook, tmp_path: Path
) -> None:
    """400 + 384 MiB and one core on each: granted as planned."""
    chosen = chosen_for(pinned(SECOND, FOURTH), hook)
    assert chosen.group.hosts == "exactly these: 2 workers kept out by 2 tokens"
    gate = tmp_path / "looked"
    running = start(started.master, settings_of(chosen).conf, "2", str(gate))
    seen = until("two executors", lambda: _two(used(started)), timeout_s=120.0)
    gate.touch()
    done = result(running)
    assert seen == {SECOND: (1, 784), FOURTH: (1, 784)}
    assert (set(started.executors(done["application"])), done["executors"]) == ({SECOND, FOURTH}, 2)


@pytest.mark.parametrize(("policy", "workers"), [("first_fit", 2), ("round_robin", 4)])
def test_a_policy_gets_the_workers_cores_and_memory_it_planned(
    policy: str, workers: int, started: StandaloneCluster, hook: PlannerHook, tmp_path: Path
) -> None:
    """Four instances on four workers of two cores: as few as hold them, or all."""
    flow = drawn("a", a={"parallelism": 4, "memory_mb": 300})
    chosen = chosen_for(flow, hook, policy=Policy(policy, PlacementSettings(), State()))
    assert check(chosen.planned.plan, flow, chosen.planned.cluster) == ()
    containers = chosen.group.containers
    expected = {box.worker: (box.cores, box.memory_mb) for box in containers}
    assert len(expected) == len(containers) == workers
    gate = tmp_path / "looked"
    running = start(started.master, settings_of(chosen).conf, str(workers), str(gate))
    seen = until("executors", lambda: found if len(found := used(started)) >= workers else None, timeout_s=120.0)
    gate.touch()
    result(running)
    assert seen == expected


def test_where_the_master_deals_other_numbers_the_plan_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three executors planned on one worker, one on the other, and room for four on each: both get two."""
    with standalone_cluster(workers=2, cores=4, memory_mb=4096, tokens=True) as two:
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", two.connection())
        first, second = two.pages
        policy = Policy("first_fit", PlacementSettings(), State())
        chosen = chosen_for(pinned(first, first, first, second), PlannerHook("cluster"), policy=policy)
        assert count_containers(chosen.group) == {first: 3, second: 1}
        assert chosen.group.hosts == (
            "all workers there are; the Master deals 4 executors out in turn, "
            "so each may have another number of them than planned"
        )
        done = result(start(two.master, settings_of(chosen).conf, "4"))
        assert done["hosts"] == [first, first, second, second]


def test_a_token_nobody_offers_is_found_before_it_is_waited_for(hook: PlannerHook) -> None:
    """The slots of the eight that no worker has are offered by all: they may be asked for."""
    workers = hook.cluster().workers
    check_offered({"spark.executor.resource.not_8.amount": "1"}, workers)
    with pytest.raises(DoesNotFit, match="not_9"):
        check_offered({"spark.executor.resource.not_9.amount": "1"}, workers)


def test_two_launches_at_one_moment_both_finish(started: StandaloneCluster, hook: PlannerHook, tmp_path: Path) -> None:
    """
    first     w1 w2 w3   6 cores   holds them until the second has ended
    second    w4         2 cores   asks for what is left
    """
    first = chosen_for(drawn("a", a={"parallelism": 6, "memory_mb": 400}), hook)
    held = reserve_executors("first", size_executors(first.group, first.planned.cluster), expires=1e12)
    second = chosen_for(drawn("a", a={"parallelism": 6, "memory_mb": 400}), hook, held)
    gate = tmp_path / "second has ended"
    running = start(started.master, settings_of(first).conf, "3", str(gate))
    done = result(start(started.master, settings_of(second).conf, "1"))
    gate.touch()
    other = result(running)
    assert (other["executors"], done["executors"]) == (3, 1)
    assert started.executors(done["application"]).keys().isdisjoint(started.executors(other["application"]))


def test_a_worker_killed_between_plan_and_launch(started: StandaloneCluster, hook: PlannerHook) -> None:
    """Submitted as it was planned, it runs on what is left. Planned anew from what is alive, as a launch does, whoever
    must be on the dead worker may be anywhere. (Last: it stays dead.)
    """
    flow = pinned(SECOND, FOURTH)
    before = chosen_for(flow, hook)
    assert {box.worker for box in before.group.containers} == {SECOND, FOURTH}
    started.kill(FOURTH)
    late = result(start(started.master, settings_of(before).conf, "1"))
    assert set(started.executors(late["application"])) == {SECOND}
    chosen = chosen_for(flow, hook)
    assert chosen.note == "the workers that s1 must be on are gone: any will do"
    done = result(start(started.master, settings_of(chosen).conf, "1"))
    there = set(started.executors(done["application"]))
    assert there
    assert there <= {box.worker for box in chosen.group.containers} - {FOURTH}
