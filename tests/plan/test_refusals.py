"""Every refusal says what lacks: needed is more than available, of the resource and on the worker it names.

w1..w3  2048 MiB each      two resident instances of 2000 MiB: 4384 of 6144 MiB would be no reason
w1      4 cores, 1000 MiB
w2      1 core, 64000 MiB  an instance of 2 cores and 1500 MiB: neither resource lacks everywhere, w1 comes nearest
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policy import POLICIES, load_policy
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import list_offers
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from tests.plan.drawn import drawn, standalone


def workers(*sizes: tuple[int, int], disk_mb: int | None = None) -> Cluster:
    """``w1``, ``w2``, ... of so many cores and MiB."""
    made = [
        Worker(id=f"w{at}", host=f"h{at}", cores=cores, memory_mb=memory, disk_mb=disk_mb)
        for at, (cores, memory) in enumerate(sizes, 1)
    ]
    return Cluster(manager="standalone", workers=tuple(made))


def refuse(flow: Dataflow, cluster: Cluster, policy: str = "") -> DoesNotFit | None:
    try:
        plan(flow, cluster, run=Run(policy=Policy(policy, PlacementSettings(), State())))
    except DoesNotFit as refusal:
        return refusal
    return None


@pytest.mark.parametrize(
    ("step", "cluster", "told"),
    [
        (
            {"mode": "streaming", "parallelism": 2, "memory_mb": 2000},
            standalone(4, 4, 4, memory_mb=2048),
            "memory of one of 2 equal containers, 1 cores and 2384 MiB, needed 2384 MiB, available 2048 MiB",
        ),
        (
            {"cores": 2, "memory_mb": 1500},
            workers((4, 1000), (1, 64_000)),
            "memory of a container with 2 cores needed 1884 MiB, available 1000 MiB",
        ),
        (
            {"memory_mb": 1500, "pinned": ("w1",)},
            workers((4, 1000), (1, 64_000)),
            "memory of a container with 1 cores where it is pinned needed 1884 MiB, available 1000 MiB",
        ),
    ],
    ids=["resident", "no worker has both", "pinned"],
)
def test_what_lacks_on_the_worker_that_comes_nearest(step: dict[str, Any], cluster: Cluster, told: str) -> None:
    assert str(refuse(drawn("a", a=step), cluster)).endswith(f"does not fit: {told} on worker 'w1'")


def test_a_policy_says_it_of_what_it_is_offered() -> None:
    step = Step(id="a", cores=2, memory_mb=1500)
    offers = list_offers(workers((4, 1000), (1, 64_000)))
    with pytest.raises(DoesNotFit) as refused:
        load_policy("first_fit", PlacementSettings()).schedule(Dataflow(name="f", steps=(step,)), offers, State())
    found = refused.value
    assert (found.dimension, found.needed, found.available, found.worker) == ("cores of an instance", 2, 1, "w2")


STEPS = st.builds(
    Step,
    id=st.just("a"),
    parallelism=st.integers(1, 6),
    cores=st.integers(1, 4),
    memory_mb=st.sampled_from([100, 1500, 3000]),
    disk_mb=st.sampled_from([0, 100]),
    mode=st.sampled_from(["batch", "streaming"]),
    pinned=st.sampled_from([(), (), ("w1",), ("w1", "w2"), ("w9",)]),
)
CLUSTERS = st.builds(
    lambda sizes, disk: workers(*sizes, disk_mb=disk),
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from([500, 2048, 3500, 8000])), min_size=1, max_size=4),
    st.sampled_from([None, None, 150]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=2), CLUSTERS, st.sampled_from(["", *sorted(POLICIES)]))
def test_more_is_needed_than_there_is_of_what_is_told(steps: list[Step], cluster: Cluster, policy: str) -> None:
    flow = Dataflow(name="f", steps=tuple(replace(step, id=f"s{at}") for at, step in enumerate(steps)))
    refusal = refuse(flow, cluster, policy)
    if refusal is None:
        return
    assert refusal.needed > refusal.available, str(refusal)
    there = {worker.id: worker for worker in cluster.workers}
    assert not refusal.worker or refusal.worker in there
    if refusal.worker and not policy:
        assert _is_true(refusal, there[refusal.worker])
        # With as much as was needed there, the answer is another: it fits, or something else lacks.
        assert str(refuse(flow, _grow(cluster, refusal))) != str(refusal)


def _is_true(refusal: DoesNotFit, worker: Worker) -> bool:
    """Whether the worker has no more than what is told to be available there."""
    has = {"cores": worker.cores, "memory": worker.memory_mb, "disk": worker.disk_mb}
    return bool(has[refusal.dimension.split()[0]] == refusal.available)


def _grow(cluster: Cluster, refusal: DoesNotFit) -> Cluster:
    field = {"cores": "cores", "memory": "memory_mb", "disk": "disk_mb"}[refusal.dimension.split()[0]]
    return replace(
        cluster,
        workers=tuple(
            replace(one, **{field: int(refusal.needed)}) if one.id == refusal.worker else one for one in cluster.workers
        ),
    )
