"""The cheapest placement on a real standalone cluster: executors come up on the small cheap workers.

dear   127.0.0.2   16 cores, cost 10      [    ]
spot   127.0.0.3    2 cores, cost 1       [aa]
spot   127.0.0.4    2 cores, cost 1       [aa]
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen, plan_on_free_cluster
from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.settings import SPARK
from airflow_dagsched.plan.problem.run import Policy
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from demo.rest import until
from tests.cluster.submitting import result, start
from tests.plan.drawn import drawn
from tests.testbed.spark_cluster import standalone_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]

DEAR, SPOTS = "127.0.0.2", ("127.0.0.3", "127.0.0.4")


def test_the_spot_workers_run_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Four instances of a minute, planned for one container of four cores, which the dear worker alone has."""
    with standalone_cluster(workers=3, cores=(16, 2, 2), memory_mb=2048, tokens=True) as started:
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", started.connection())
        live = PlannerHook("cluster").cluster()
        priced = tuple(replace(one, cost=10.0 if one.host == DEAR else 1.0) for one in live.workers)
        flow = drawn("a", a={"parallelism": 4, "runtime_s": 60, "memory_mb": 300})
        facts = Facts(dataflow=flow, cluster=replace(live, workers=priced), policy=Policy("cheapest", SPARK, State()))
        chosen = plan_on_free_cluster(facts, ["a"])
        assert isinstance(chosen, Chosen)
        gate = tmp_path / "looked"
        running = start(started.master, make_submission(chosen.group, chosen.planned.cluster).conf, "2", str(gate))

        def list_taken() -> dict[str, int] | None:
            taken = {host: page["coresused"] for host, page in started.workers().items() if page["coresused"]}
            return taken if len(taken) > 1 else None

        seen = until("two executors", list_taken, timeout_s=120.0)
        gate.touch()
        done = result(running)
        assert seen == dict.fromkeys(SPOTS, 2)
        assert set(started.executors(done["application"])) == set(SPOTS)
