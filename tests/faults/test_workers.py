"""The worker that has the executors is killed in each state of a switch: the same table in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.actors import DriverActor, WorkerActor
from tests.faults.play import NEW_EPOCH, OLD_EPOCH, play_switch, playing
from tests.faults.plots import REPLAY
from tests.streams.kit import Flow, Graph
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.faults]

ONE_EXECUTOR = {
    "spark.driver.host": "127.0.0.1",
    "spark.cores.max": "1",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandaloneCluster]:
    """Two workers, each with room for the only executor."""
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with standalone_cluster(workers=2, cores=1, memory_mb=1024) as started:
        yield started


def test_the_worker_with_the_executors_is_killed_in_any_state(tmp_path: Path, cluster: StandaloneCluster):
    flow, plot = Flow(tmp_path), replace(REPLAY, old=run_on(REPLAY.old, cluster), new=run_on(REPLAY.new, cluster))
    with playing(flow, plot) as play:
        graphs = DriverActor(play, OLD_EPOCH, NEW_EPOCH)
        play.cast = {"graphs": graphs, "worker": WorkerActor(cluster)}
        play_switch(play, plot, {"steady": ["worker"]})
        graphs.stop()
    plot.check(flow, play.feed)
    assert play.seen == {"worker": {"steady", *plot.states}}


def run_on(graph: Graph, cluster: StandaloneCluster) -> Graph:
    """The graph, with its driver here and its executor on a worker."""
    return replace(graph, conf={**graph.conf, **ONE_EXECUTOR, "spark.master": cluster.master})
