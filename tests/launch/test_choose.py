"""Where a group goes at launch: what is free now, rather elsewhere than never; and two launches at one moment."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation import fit_to_free_cluster
from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.launch.escalation.reservations import Reservation, reserve_executors, subtract_reservations
from airflow_dagsched.launch.managers.executors import size_executors
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.model.dataflow import Dataflow
from tests.plan.drawn import drawn, standalone


def wide(parallelism: int, **fields: Any) -> Dataflow:
    """One step of so many instances of 1 core and 100 MiB."""
    return drawn("a", a={"parallelism": parallelism, "memory_mb": 100, **fields})


def choose(flow: Dataflow, cluster: Cluster, held: Sequence[Reservation] = ()) -> Chosen | None:
    """All steps of ``flow`` as one application; None: there is no room yet."""
    found = fit_to_free_cluster.plan_on_free_cluster(
        Facts(dataflow=flow, cluster=cluster), [step.id for step in flow.steps], held
    )
    return found if isinstance(found, Chosen) else None


def busy(cluster: Cluster, *free: int) -> Cluster:
    """So many cores are free on each worker."""
    pairs = zip(cluster.workers, free, strict=True)
    return replace(cluster, workers=tuple(replace(worker, free=Free(cores=cores)) for worker, cores in pairs))


def taken(flow: Dataflow, cluster: Cluster, held: list[Reservation], name: str) -> Reservation | None:
    """What a launch reserves; None: it has to wait."""
    chosen = choose(flow, cluster, held)
    if chosen is None:
        return None
    return reserve_executors(name, size_executors(chosen.group, chosen.planned.cluster), expires=100.0)


def test_a_pinned_step_goes_where_its_author_wants_it() -> None:
    chosen = choose(wide(2, pinned=("w2",)), standalone(4, 4))
    assert chosen is not None
    assert (chosen.group.containers[0].worker, chosen.exact, chosen.note) == ("w2", True, "")


def test_a_worker_that_is_gone_widens_the_set() -> None:
    chosen = choose(wide(2, pinned=("w9",)), standalone(4, 4))
    assert chosen is not None
    assert (chosen.exact, chosen.note) == (True, "the workers that a must be on are gone: any will do")


def test_of_several_the_live_ones_are_left() -> None:
    chosen = choose(wide(2, pinned=("w9", "w2")), standalone(4, 4))
    assert chosen is not None
    assert ([box.worker for box in chosen.group.containers], chosen.note) == (["w2"], "")


def test_a_worker_that_is_full_widens_the_set() -> None:
    chosen = choose(wide(2, pinned=("w2",)), busy(standalone(4, 4), 4, 0))
    assert chosen is not None
    assert chosen.group.containers[0].worker == "w1"
    assert chosen.note == "the workers that its steps are pinned to are full: any will do"


def test_a_busy_standalone_cluster_is_waited_for_before_anything_is_submitted() -> None:
    assert choose(wide(8, pinned=("w2",)), busy(standalone(4, 4), 0, 0)) is None


@pytest.mark.parametrize("manager", ["yarn", "kubernetes"])
def test_a_manager_that_may_grow_is_asked_for_more_than_is_free(manager: Any) -> None:
    """On no worker in particular: whichever is free first."""
    chosen = choose(wide(8, pinned=("w2",)), replace(busy(standalone(4, 4), 0, 0), manager=manager))
    assert chosen is not None
    assert (len(chosen.group.containers), chosen.exact) == (2, False)
    assert chosen.note.endswith("it waits at the cluster manager")


def test_it_asks_only_for_what_is_free() -> None:
    """Of three containers of 4 cores two have room now."""
    chosen = choose(wide(12), busy(standalone(4, 4, 4), 4, 0, 4))
    assert chosen is not None
    assert [box.worker for box in chosen.group.containers] == ["w1", "w3"]


def test_what_is_larger_than_the_cluster_is_refused_not_waited_for() -> None:
    with pytest.raises(DoesNotFit, match="needed 9 cores, available 4"):
        choose(wide(1, cores=9), standalone(4), [Reservation(id="x", expires=9.0, cores={"w1": 4}, memory_mb={})])


def test_reserved_is_not_free() -> None:
    held = Reservation(id="x", expires=9.0, cores={"w1": 3, "w9": 1}, memory_mb={"w1": 1000})
    worker = subtract_reservations(standalone(4, memory_mb=4000), [held, held]).workers[0]
    assert (worker.free_cores, worker.free_memory_mb, worker.cores) == (0, 2000, 4)


def test_two_launches_at_one_moment_share_the_cluster_or_wait() -> None:
    """
    w1 4 cores, w2 4 cores
    first    8 instances   takes both      second    waits until the first has started: then the manager counts
    first    4 instances   takes w1        second    takes w2
    """
    cluster = standalone(4, 4)
    first = taken(wide(8), cluster, [], "first")
    assert first is not None
    assert first.cores == {"w1": 4, "w2": 4}
    assert taken(wide(8), cluster, [first], "second") is None
    first = taken(wide(4), cluster, [], "first")
    assert first is not None
    second = taken(wide(4), cluster, [first], "second")
    assert second is not None
    assert (first.cores, second.cores) == ({"w1": 4}, {"w2": 4})


@given(st.integers(1, 6), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_no_core_is_promised_twice(count: int, seed: int) -> None:
    """Whatever launches come, in whatever order."""
    rng = random.Random(seed)
    workers = (Worker(id=f"w{at}", host="h", cores=rng.randint(1, 8), memory_mb=4000) for at in range(count))
    cluster = Cluster(manager="standalone", workers=tuple(workers))
    held: list[Reservation] = []
    for at in range(rng.randint(1, 8)):
        found = taken(wide(rng.randint(1, 12)), cluster, held, f"launch{at}")
        held += [found] if found is not None else []
    for worker in cluster.workers:
        assert sum(one.cores.get(worker.id, 0) for one in held) <= worker.cores
        assert sum(one.memory_mb.get(worker.id, 0) for one in held) <= worker.memory_mb
    assert held
