"""Instances that weigh differently, on workers of any capacity: no hand-over only to refine the load.

No load is level beyond the heaviest instance, so what is uneven by less is no reason to hand anything over, and what
the loss of a worker left uneven by one more such instance is none either. A worker that comes is filled.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.facts import gather_facts
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.sticky.standbys.failures import Failures
from airflow_dagsched.placement.high_availability.sticky.standbys.weighted_failures import (
    WeightedFailures,
    make_failures,
)
from airflow_dagsched.placement.high_availability.values import Instance, Worker
from tests.placement.high_availability.simulated import Cluster, list_hand_overs, workers


def weighing(*weights: float) -> list[Instance]:
    return [Instance(f"s/{at}", "s", weight=weight) for at, weight in enumerate(weights)]


def test_what_the_heaviest_explains_is_left_alone() -> None:
    """w1  3 1 1       one of weight 1 could go to w2, which would make 4 and 4: not worth a hand-over
    w2  1 1 1
    """
    placed = {f"s/{at}": worker for at, worker in enumerate(["w1", "w1", "w1", "w2", "w2", "w2"])}
    cluster = Cluster(weighing(3, 1, 1, 1, 1, 1), workers(2), Settings(), last=Assignment(active=placed))
    assert cluster.settle() == 1
    assert list_hand_overs(Assignment(active=placed), cluster.history) == {}


def test_who_comes_is_filled_with_the_heaviest_first() -> None:
    """w1  2 2 2 1 1    w3 comes       w1  2 1 1
    w2  2 2 2 1 1    ─────────>     w2  2 2 1 1         two moves rather than four of weight 1
                                    w3  2 2 (2)
    """
    placed = {f"s/{at}": "w1" if at % 2 else "w2" for at in range(10)}
    cluster = Cluster(weighing(2, 2, 2, 2, 2, 2, 1, 1, 1, 1), workers(2), Settings(), last=Assignment(active=placed))
    cluster.join(Worker("w3"))
    cluster.settle()
    moved = list_hand_overs(Assignment(active=placed), cluster.history)
    assert {cluster.last.active[at] for at in moved} == {"w3"}  # type: ignore[union-attr]
    assert all(cluster.instances[int(at[2:])].weight == 2 for at in moved)
    assert 2 <= len(moved) <= 3


def test_what_has_been_warmed_up_is_used() -> None:
    """Like instances level in any order; of these, one warmed up too soon was given up for another, without end."""
    weights = [1, 1, 2, 3.5, 2, 3.5, 3.5, 1, 1, 1, 1, 3.5, 3.5]
    hosts = [Worker(f"w{at}", capacity) for at, capacity in enumerate([2, 1, 2, 1, 1, 2])]
    cluster = Cluster(weighing(*weights), hosts, Settings(num_standbys=2, max_warmups=1))
    cluster.settle()
    cluster.join(Worker("w20", 2))
    cluster.settle()
    for made, then in pairwise(cluster.history):
        for instance, warm in made.assignment.warmup.items():
            assert set(warm) <= {then.assignment.active[instance], *then.assignment.standby[instance]}


def unlike(data: st.DataObject, most_standbys: int) -> Cluster:
    """At rest."""
    weights = data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.5]), min_size=1, max_size=50))
    sizes = st.sampled_from(data.draw(st.sampled_from([[1], [1, 2, 4]])))
    hosts = [Worker(f"w{at}", data.draw(sizes)) for at in range(data.draw(st.integers(2, 12)))]
    said = Settings(num_standbys=data.draw(st.integers(0, most_standbys)), max_warmups=data.draw(st.integers(1, 8)))
    cluster = Cluster(weighing(*weights), hosts, said)
    cluster.settle()
    return cluster


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_after_a_join_only_the_new_worker_is_given_anything(data: st.DataObject) -> None:
    cluster = unlike(data, most_standbys=2)
    before = cluster.last
    assert before is not None
    cluster.join(Worker("w20", data.draw(st.sampled_from([1, 2, 4]))))
    cluster.settle()
    assert cluster.last is not None
    moved = list_hand_overs(before, cluster.history)
    assert sum(moved.values()) <= Counter(cluster.last.active.values())["w20"] + 1
    assert max(moved.values(), default=1) == 1


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_after_a_loss_only_what_was_lost_changes_hands(data: st.DataObject) -> None:
    """Without standbys, where the lost may go anywhere."""
    cluster = unlike(data, most_standbys=0)
    before, gone = cluster.last, data.draw(st.sampled_from(cluster.workers)).id
    assert before is not None
    cluster.leave(gone)
    cluster.settle()
    lost = {at for at, worker in before.active.items() if worker == gone}
    moved = list_hand_overs(before, cluster.history)
    assert sum(moved.values()) <= len(lost) + 1
    assert max(moved.values(), default=1) == 1


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_no_load_is_uneven_by_more_than_two_of_the_heaviest(data: st.DataObject) -> None:
    """After any history of workers that came and went; of capacity 1, so that loads compare."""
    weights = data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.5]), min_size=1, max_size=50))
    said = Settings(num_standbys=data.draw(st.integers(0, 2)))
    cluster = Cluster(weighing(*weights), workers(data.draw(st.integers(2, 8))), said)
    cluster.settle()
    for added in range(20, 20 + data.draw(st.integers(1, 4))):
        gone = data.draw(st.sampled_from(["nobody", *(host.id for host in cluster.workers)]))
        cluster.join(Worker(f"w{added}")) if gone == "nobody" else cluster.leave(gone)
        if not cluster.workers:
            return
        cluster.settle()
        assert cluster.last is not None
        loads = dict.fromkeys((host.id for host in cluster.workers), 0.0)
        for at, worker in cluster.last.active.items():
            loads[worker] += weights[int(at[2:])]
        heaviest = max(weights)
        assert max(loads.values()) - min(loads.values()) <= 2 * heaviest + 1e-6
        resting = cluster.last
        assert cluster.step().assignment == resting


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_a_change_of_standbys_saves_is_what_failures_cost_less(data: st.DataObject) -> None:
    """The saving foreseen, against all counted anew."""
    count, standbys = data.draw(st.integers(3, 6)), data.draw(st.integers(1, 2))
    weights = data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.5]), min_size=2, max_size=20))
    hosts = [Worker(f"w{at}", data.draw(st.sampled_from([1, 2, 4]))) for at in range(count)]
    facts = gather_facts(weighing(*weights), hosts, {}, Settings(num_standbys=standbys))
    drawn = [data.draw(st.permutations(range(count)))[: standbys + 1] for _ in weights]
    active = {at: one[0] for at, one in enumerate(drawn)}
    found = make_failures(facts, active, {at: list(one[1:]) for at, one in enumerate(drawn)})
    assert isinstance(found, WeightedFailures) == (len(set(weights)) > 1)
    changed = data.draw(st.integers(0, len(weights) - 1))
    source, target = drawn[changed][1], data.draw(st.integers(0, count - 1))
    if target in drawn[changed]:
        return
    before = found.sum_costs(range(count))
    saved = found.compute_saving(changed, active[changed], source, target)
    held: dict[int, list[int]] = {at: list(one[1:]) for at, one in enumerate(drawn)}
    held[changed][0] = target
    anew: Failures = make_failures(facts, active, held)
    after = anew.sum_costs(range(count))
    assert saved <= (before[0] - after[0], before[1] - after[1])
    if isinstance(found, WeightedFailures):
        assert saved == (before[0] - after[0], before[1] - after[1])
