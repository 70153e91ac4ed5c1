"""The worker that has the executors is killed in each state of a switch: the same table in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.combinations import list_states
from tests.faults.drivers import DriverActor
from tests.faults.play import NEW_EPOCH, OLD_EPOCH, THIRD_EPOCH, play_given_up, play_switch, playing
from tests.faults.plots import REPLAY
from tests.streams.kit import Flow, Graph, wait_until
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.faults]

ONE_EXECUTOR = {
    "spark.driver.host": "127.0.0.1",
    "spark.cores.max": "1",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
}


class WorkerActor:
    """The worker that has the executors; once it was killed they begin on another, and it comes back."""

    def __init__(self, cluster: StandaloneCluster) -> None:
        self._cluster = cluster

    def go_on(self) -> None:
        """See ``Actor``."""
        while self._cluster.late:
            self._cluster.join()

    def settle(self) -> None:
        """See ``Actor``."""
        wait_until(lambda: bool(self._list_busy()), lambda: f"{self}")

    def kill(self) -> list[str]:
        """See ``Actor``; with its executors."""
        for host in self._list_busy():
            self._cluster.kill(host)
        return ["worker"]

    def _list_busy(self) -> list[str]:
        return [host for host, page in self._cluster.workers().items() if page["executors"]]

    def __repr__(self) -> str:
        return f"{self._cluster.state()}"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandaloneCluster]:
    """Two workers, each with room for the only executor."""
    with standalone_cluster(workers=2, cores=1, memory_mb=1024) as started:
        # Of drivers alone: workers would show their pages there, and not where they say.
        monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield started


def test_the_worker_with_the_executors_is_killed_in_any_state(tmp_path: Path, cluster: StandaloneCluster):
    flow, plot = Flow(tmp_path), replace(REPLAY, old=run_on(REPLAY.old, cluster), new=run_on(REPLAY.new, cluster))
    with playing(flow, plot) as play:
        graphs = DriverActor(play, "graphs", OLD_EPOCH, NEW_EPOCH, THIRD_EPOCH)
        play.cast = {"graphs": graphs, "worker": WorkerActor(cluster)}
        play_switch(play, {"steady": ["worker"]})
        play_given_up(play, {"steady": ["worker"]})
        graphs.stop()
    plot.check(flow, play.feed)
    assert play.seen == {"worker": list_states("replay, worker of Spark")}


def run_on(graph: Graph, cluster: StandaloneCluster) -> Graph:
    """The graph, with its driver here and its executor on a worker."""
    return replace(graph, conf={**graph.conf, **ONE_EXECUTOR, "spark.master": cluster.master})
