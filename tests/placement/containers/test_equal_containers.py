"""Equal containers on unlike workers: found whenever an exhaustive search finds some."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.placement.containers.equal_containers import find_equal_containers
from airflow_dagsched.placement.request import make_request
from airflow_dagsched.placement.values import Offer
from tests.placement.drawn import PLAIN

Needs = list[tuple[int, int]]
"""Cores and MiB of each instance."""

needs = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([100, 300, 700])), min_size=1, max_size=5)
workers = st.lists(st.tuples(st.integers(1, 6), st.sampled_from([500, 900, 2000])), min_size=1, max_size=3)


@settings(max_examples=150, deadline=None)
@given(needs=needs, workers=workers)
def test_found_if_there_is_a_way(needs: Needs, workers: Needs) -> None:
    steps = (
        Step(id=f"s{at}", cores=cores, memory_mb=memory, mode="streaming") for at, (cores, memory) in enumerate(needs)
    )
    offers = [
        Offer(id=f"w{at}", worker=f"w{at}", cores=cores, memory_mb=memory) for at, (cores, memory) in enumerate(workers)
    ]
    found = find_equal_containers(make_request(Dataflow(name="d", steps=tuple(steps)), offers, PLAIN))
    assert (found is not None) == any(fits(needs, workers, boxes) for boxes in partitions(len(needs)))


def partitions(count: int) -> set[tuple[int, ...]]:
    """All ways to share out so many instances: for each the container it is in."""
    return set(itertools.product(range(count), repeat=count))


def fits(needs: Needs, workers: Needs, boxes: tuple[int, ...]) -> bool:
    """Whether the workers have room for as many containers of the largest shape; 100 MiB of padding."""
    held = [[need for need, box in zip(needs, boxes, strict=True) if box == at] for at in set(boxes)]
    cores = max(sum(need[0] for need in box) for box in held)
    memory = 100 + max(sum(need[1] for need in box) for box in held)
    return sum(min(worker[0] // cores, worker[1] // memory) for worker in workers) >= len(held)
