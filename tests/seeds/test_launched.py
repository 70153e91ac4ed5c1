"""The documents' worked examples on a real standalone cluster: what was planned is what Spark says it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.plan.passes.pin_hosts import count_containers
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from tests.cluster.submitting import result, start
from tests.dags.conftest import Play
from tests.seeds.answers import COMPLETABLE, KIP, ONE, TWISTER2, TWO, named, place_clients, placed
from tests.seeds.conftest import DAYS, ROWS, Seeds
from tests.testbed.event_log import EventLog

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]


def planned_cores(groups: Iterable[Group]) -> list[dict[str, int]]:
    """For each application the cores asked for on each worker."""
    return [{box.worker: box.cores for box in group.containers} for group in groups]


def held_cores(logs: Iterable[EventLog]) -> list[dict[str, int]]:
    """The same, as Spark's executors had them."""
    return [dict(log.cores) for log in logs]


def test_twister2s_two_tasks_on_two_containers(seeds: Seeds, play: Play) -> None:
    hook = PlannerHook("cluster")
    plans = {name: hook.plan(flow) for name, flow in seeds.parse("twister2").items()}
    assert {name: placed(*planned.groups) for name, planned in plans.items()} == TWISTER2
    run = seeds.play("twister2", play)
    for name, planned in plans.items():
        assert held_cores(run.logs[name]) == planned_cores(planned.groups)
        assert {row["value"] for row in run.rows(name)} == set(range(0, 2000, 2))


def test_the_completable_subgraphs(seeds: Seeds, play: Play) -> None:
    """An application a subgraph, where it was planned; what was cut comes out whole."""
    hook = PlannerHook("cluster")
    plans = {name: hook.plan(flow) for name, flow in seeds.parse("completable").items()}
    assert {name: named(planned) for name, planned in plans.items()} == COMPLETABLE
    run = seeds.play("completable", play)
    for name, planned in plans.items():
        assert held_cores(run.logs[name]) == planned_cores(planned.groups)
    odd = range(1, 100, 2)
    doubled = {2 * each for each in odd}
    found = {name: {row["id"] for row in run.rows(name)} for name in COMPLETABLE}
    assert found == {"detour": {*odd, *range(0, 200, 2)}, "cut": doubled, "split": doubled}


def test_jets_query_on_one_key(seeds: Seeds, play: Play) -> None:
    """One partition of four, so one instance of four, so one worker of two; the same rows as of all."""
    run = seeds.play("jet", play)
    read = {name: sum(task.rows for log in logs for task in log.scans) for name, logs in run.logs.items()}
    assert read == {"pruned": ROWS // DAYS, "whole": ROWS}
    held = {name: held_cores(logs) for name, logs in run.logs.items()}
    assert held == {"pruned": [{ONE: 1}], "whole": [{ONE: 2, TWO: 2}]}
    total = sum(at for at in range(ROWS) if at % DAYS == 2)
    assert [run.rows(name) for name in run.logs] == [[{"total": total}]] * 2


@pytest.mark.parametrize("name", KIP)
def test_kips_assignments(name: str, seeds: Seeds) -> None:
    """Executors come up where instances are alone: a warm-up asks for none."""
    planned, ours = place_clients(KIP[name], PlannerHook("cluster").cluster())
    (group,) = planned.groups
    executors = count_containers(group).total()
    done = result(start(seeds.cluster.master, make_submission(group, ours).conf, str(executors)))
    assert done["executors"] == executors
    # As the driver saw them: a Worker's page may also have one that came as the application ended.
    there = Counter(done["hosts"])
    assert set(there) == set(KIP[name].active)
    # One client has two of four tasks: which of three workers the Master gives two executors is up to it.
    assert there == count_containers(group) or "the Master deals 4 executors out in turn" in group.hosts
