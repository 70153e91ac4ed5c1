"""What holds for any input: every instance once, the same answer for any order, and ``sticky`` does not thrash."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.policy import STRATEGIES, place_instances
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.values import RUNNING, Instance, Lag, Outcome, Worker
from tests.placement.high_availability.simulated import (
    Cluster,
    check_settled,
    list_hand_overs,
    stateful,
    stateless,
    workers,
)

Input = tuple[list[Instance], list[Worker], dict[str, dict[str, Lag]], Assignment | None, dict[str, float]]


@st.composite
def inputs(draw: st.DrawFn) -> Input:
    """Lags, capacities, tags and a prior assignment that may name workers and instances long gone."""
    rng = random.Random(draw(st.integers(0, 2**32), label="seed"))
    instances = [*stateful(draw(st.integers(0, 25)), rng.randint(1, 4)), *stateless(rng.randint(0, 6))]
    tags = [{"zone": f"z{rng.randint(1, 3)}"} for _ in range(12)]
    hosts = [Worker(f"w{at}", rng.choice([1, 1, 2, 5]), tags[at]) for at in range(draw(st.integers(1, 12)))]
    names = [f"w{at}" for at in range(14)]
    lags = {
        instance.id: {name: rng.choice([RUNNING, None, 0.0, 50.0, 500.0, 9000.0]) for name in rng.sample(names, 5)}
        for instance in [*instances, Instance("gone/0", "gone")]
        if rng.random() < 0.8
    }
    active = {instance.id: rng.choice(names) for instance in instances if rng.random() < 0.9}
    standby = {instance.id: tuple(rng.sample(names, 2)) for instance in instances if rng.random() < 0.5}
    previous = Assignment(active={**active, "gone/0": "w1"}, standby=standby) if rng.random() < 0.7 else None
    offsets = {instance.id: 1000.0 for instance in instances} if rng.random() < 0.5 else {}
    return instances, hosts, lags, previous, offsets  # type: ignore[return-value]


def some_settings(strategy: str) -> st.SearchStrategy[Settings]:
    return st.builds(
        Settings,
        strategy=st.just(strategy),
        num_standbys=st.integers(0, 3),
        max_warmups=st.integers(0, 4),
        balance_factor=st.integers(1, 3),
        acceptable_recovery_lag=st.sampled_from([0.0, 100.0, 1e19]),
        spread_tags=st.sampled_from([(), ("zone",)]),
    )


def made_of(given_: Input, chosen: Settings) -> Outcome:
    instances, hosts, lags, previous, offsets = given_
    return place_instances(instances, hosts, lags, chosen, previous=previous, offsets=offsets)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_every_instance_is_active_once_and_no_worker_has_two_copies(strategy: str, data: st.DataObject) -> None:
    given_, chosen = data.draw(inputs()), data.draw(some_settings(strategy))
    made, live = made_of(given_, chosen).assignment, {worker.id for worker in given_[1]}
    assert made.active.keys() == {instance.id for instance in given_[0]}
    for instance in given_[0]:
        copies = (*made.standby.get(instance.id, ()), *made.warmup.get(instance.id, ()))
        held = [made.active[instance.id], *copies]
        assert set(held) <= live
        assert len(set(held)) == len(held)
        assert instance.stateful or not copies


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_the_order_of_the_input_means_nothing(strategy: str, data: st.DataObject) -> None:
    (instances, hosts, lags, previous, offsets), chosen = data.draw(inputs()), data.draw(some_settings(strategy))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    first = made_of((instances, hosts, lags, previous, offsets), chosen)
    mixed = {at: dict(shuffled(rng, list(lags[at].items()))) for at in shuffled(rng, list(lags))}
    prior = previous and Assignment(
        active=dict(shuffled(rng, list(previous.active.items()))),
        standby=dict(shuffled(rng, list(previous.standby.items()))),
    )
    again = made_of((shuffled(rng, instances), shuffled(rng, hosts), mixed, prior, offsets), chosen)
    assert encode_value(again.assignment) == encode_value(first.assignment)
    assert (again.movements, again.follow_up) == (first.movements, first.follow_up)


def shuffled(rng: random.Random, values: Sequence[object]) -> list:  # type: ignore[type-arg]
    return rng.sample(values, len(values))


@given(inputs(), some_settings("sticky"))
@settings(max_examples=60, deadline=None)
def test_sticky_has_its_standbys(given_: Input, chosen: Settings) -> None:
    made = made_of(given_, chosen).assignment
    wanted = min(chosen.num_standbys, len(given_[1]) - 1)
    assert all(len(made.standby.get(at.id, ())) == wanted for at in given_[0] if at.stateful)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_more_warm_ups_than_allowed(strategy: str, data: st.DataObject) -> None:
    given_, chosen = data.draw(inputs()), data.draw(some_settings(strategy))
    assert sum(map(len, made_of(given_, chosen).assignment.warmup.values())) <= chosen.max_warmups


def settled(draw: st.DataObject, most_standbys: int = 3, most_workers: int = 12) -> Cluster:
    """A cluster that has started and come to rest."""
    count = draw.draw(st.integers(1, most_workers), label="workers")
    cluster = Cluster(
        [
            *stateful(draw.draw(st.integers(1, 60), label="instances"), draw.draw(st.integers(1, 5), label="steps")),
            *stateless(draw.draw(st.integers(0, 6), label="stateless")),
        ],
        workers(count),
        Settings(
            num_standbys=draw.draw(st.integers(0, most_standbys), label="standbys"),
            max_warmups=draw.draw(st.integers(1, 4), label="warm-ups"),
            acceptable_recovery_lag=100,
        ),
    )
    assert cluster.settle() == 1
    return cluster


def stateful_hand_overs(cluster: Cluster, before: Assignment) -> dict[str, int]:
    return {at: count for at, count in list_hand_overs(before, cluster.history).items() if at.startswith("s")}


def loads(cluster: Cluster) -> Counter[str]:
    assert cluster.last is not None
    return Counter(cluster.last.active[at.id] for at in cluster.instances if at.stateful)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_worker_that_joins_takes_its_share_and_nothing_else_moves(data: st.DataObject) -> None:
    cluster = settled(data)
    before, count = cluster.last, len(cluster.workers)
    assert before is not None
    cluster.join(Worker(f"w{count + 1}"))
    cluster.settle()
    moved = stateful_hand_overs(cluster, before)
    assert sum(moved.values()) == sum(at.stateful for at in cluster.instances) // (count + 1)
    assert max(moved.values(), default=1) == 1
    check_settled(cluster)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_when_a_worker_leaves_little_more_than_what_it_had_moves(data: st.DataObject) -> None:
    """With one standby there is no choice: what was on the worker goes where its standby is, then the rest is level."""
    cluster = settled(data, most_standbys=1)
    if len(cluster.workers) == 1:
        cluster.join(Worker("w2"))
        cluster.settle()
    before, gone = cluster.last, data.draw(st.sampled_from(cluster.workers)).id
    assert before is not None
    orphans = [at for at, worker in before.active.items() if worker == gone and at.startswith("s")]
    after = loads(cluster)
    del after[gone]
    if cluster.settings.num_standbys:
        after.update(before.standby[at][0] for at in orphans)
    cluster.leave(gone)
    cluster.settle()
    moved = stateful_hand_overs(cluster, before)
    forced = moves_to_level([after[worker.id] for worker in cluster.workers]) if cluster.settings.num_standbys else 0
    assert sum(moved.values()) == len(orphans) + forced
    assert max(moved.values(), default=1) == 1
    check_settled(cluster)


def moves_to_level(counts: list[int]) -> int:
    least, rest = divmod(sum(counts), len(counts))
    over = sum(max(0, count - least - bool(rest)) for count in counts)
    return max(over, sum(max(0, least - count) for count in counts))


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_sticky_comes_to_rest_after_any_chain_of_events(data: st.DataObject) -> None:
    cluster, added = settled(data), 12
    for _ in range(data.draw(st.integers(1, 5))):
        if len(cluster.workers) == 1 or data.draw(st.booleans()):
            added += 1
            cluster.join(Worker(f"w{added}"))
        else:
            cluster.leave(data.draw(st.sampled_from(cluster.workers)).id)
        cluster.settle()
        check_settled(cluster)
        resting = cluster.last
        assert cluster.step().assignment == resting
        assert cluster.history[-1].movements == ()


@pytest.mark.parametrize("tells_prior", [True, False])
def test_ten_workers_become_eleven(tells_prior: bool) -> None:
    """100 instances, 1 standby, 2 warm-ups at once: 100 // 11 = 9 change hands, where trunk needs 720 in 86 rounds.

    The new worker gets 9 actives and 9 standbys: 18 copies, 2 a round, and a round to see that all is done. What
    follows are standbys that change places so that no failure costs much; that needs the prior assignment.
    """
    cluster = Cluster(stateful(100), workers(10), Settings(num_standbys=1), tells_prior=tells_prior)
    cluster.settle()
    before = cluster.last
    assert before is not None
    cluster.join(Worker("w11"))
    assert cluster.settle() <= (15 if tells_prior else 10)
    moved = list_hand_overs(before, cluster.history)
    assert set(moved.values()) == {1}
    assert len(moved) == 9
    check_settled(cluster)
