"""Where the executors of a second application go on a standalone cluster."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.managers.executors import Executors
from airflow_dagsched.launch.managers.standalone.second_set import choose_workers, list_tokens
from airflow_dagsched.model.cluster import Cluster, Free
from tests.plan.drawn import standalone

FIRST = Executors({"w1": 2}, cores=2, memory_mb=1000)
"""Two executors of two cores."""


def make_cluster(*cores: int, taken: dict[str, int] | None = None) -> Cluster:
    """Workers with slots; cores that are taken, by worker."""
    cluster, used = standalone(*cores), taken or {}
    names = [f"not_{n}" for n in range(1, len(cores) + 1)]
    workers = (
        replace(
            each,
            tokens=tuple(x for x in names if x[4:] != each.id[1:]),
            free=Free(cores=each.cores - used.get(each.id, 0)),
        )
        for each in cluster.workers
    )
    return replace(cluster, workers=tuple(workers))


@pytest.mark.parametrize(
    ("cluster", "on"),
    [
        (make_cluster(4, 4, taken={"w1": 4}), {"w2": 2}),
        (make_cluster(8, 4, taken={"w1": 4}), {"w2": 2}),
        (make_cluster(4, 4, 4, taken={"w1": 4}), {"w2": 1, "w3": 1}),
        (make_cluster(4, 2, 6, taken={"w1": 4}), {"w2": 1, "w3": 1}),
        (make_cluster(6, 2, taken={"w1": 4}), {"w1": 1, "w2": 1}),  # beside the first, rather than not at all
    ],
)
def test_a_second_application_is_on_other_workers_if_it_fits_there(cluster: Cluster, on: dict[str, int]):
    found = choose_workers(cluster, FIRST, ("w1",), {"spark.executor.resource.not_2.amount": "1"})
    assert (found.on, found.cores, found.memory_mb) == (on, 2, 1000)
    kept = {each.id for each in cluster.workers if {*list_tokens(found, cluster)} <= {
        f"spark.executor.resource.{token}.amount" for token in each.tokens
    }}  # fmt: skip
    assert kept == {*on}


def test_what_fits_nowhere_is_said():
    with pytest.raises(LaunchRefused, match="no room for its 2 executors of 2 cores and 1000 MiB"):
        choose_workers(make_cluster(4, 2, taken={"w1": 4}), FIRST, ("w1",), {})
    with pytest.raises(LaunchRefused, match="no room"):
        choose_workers(make_cluster(4, 4), FIRST, ("w1",), {"spark.executor.resource.gpu.amount": "1"})
