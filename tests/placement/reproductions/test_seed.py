"""Strategy ``seed``, by hand: each table is the pseudo-code walked through, workers left to right."""

from __future__ import annotations

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.facts import gather_facts
from airflow_dagsched.placement.high_availability.policy import place_instances
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.reproductions.seed import rank_candidates
from tests.placement.high_availability.simulated import Cluster, drawn, stateful, stateless, workers

SEED = Settings(strategy="seed", acceptable_recovery_lag=100)


def test_ranks_are_lists_of_workers() -> None:
    """100 is within the limit, 101 is not; no lag, or an unknown one, is all 500 offsets."""
    lags = {"s0/0": {"w1": 100.0, "w2": 101.0, "w3": None, "w5": 0.0}}
    facts = gather_facts(stateful(1), workers(5), lags, SEED, offsets={"s0/0": 500})
    assert rank_candidates(facts) == {0: {0.0: [0, 4], 101: [1], 500: [2, 3]}}


def test_one_worker_becomes_two() -> None:
    """The proposal levels 4:0 to 2:2; each of its two movements plants a copy, though no standby is asked for."""
    cluster = Cluster(stateful(4), workers(1), SEED)
    cluster.settle()
    cluster.join(*workers(1, first=2))
    assert drawn(cluster.step()) == {"w1": "0 1 2 3 / - / -", "w2": "- / - / 0 1"}
    assert [(moved.instance, moved.source, moved.target) for moved in cluster.history[-1].movements] == [
        ("s0/0", "w1", "w2"),
        ("s0/1", "w1", "w2"),
    ]
    assert cluster.history[-1].follow_up
    made = cluster.step()
    assert drawn(made) == {"w1": "2 3 / - / -", "w2": "0 1 / - / -"}
    assert not made.follow_up
    assert cluster.step().assignment == made.assignment


def test_a_movement_is_the_first_standby() -> None:
    """One standby is asked for: the moved ones have theirs, the ``while`` adds one for each of the others."""
    settings = Settings(strategy="seed", acceptable_recovery_lag=100, num_standbys=1)
    lags = {f"s0/{at}": {"w1": 0.0} for at in range(4)}
    made = place_instances(stateful(4), workers(2), lags, settings)
    assert drawn(made) == {"w1": "0 1 2 3 / - / -", "w2": "- / 2 3 / 0 1"}


def test_no_more_warm_ups_than_allowed() -> None:
    """Both movements want one: the first has it, the other waits, with the standby that is asked for."""
    settings = Settings(strategy="seed", acceptable_recovery_lag=100, num_standbys=1, max_warmups=1)
    lags = {f"s0/{at}": {"w1": 0.0} for at in range(4)}
    made = place_instances(stateful(4), workers(2), lags, settings)
    assert drawn(made) == {"w1": "0 1 2 3 / - / -", "w2": "- / 1 2 3 / 0"}
    assert [(moved.instance, moved.how) for moved in made.movements] == [("s0/0", "warm up"), ("s0/1", "wait")]
    assert made.follow_up


def test_without_warm_ups_nothing_is_planted_and_nothing_followed_up() -> None:
    """Nor are those kept that an earlier plan had under way."""
    settings = Settings(strategy="seed", acceptable_recovery_lag=100, max_warmups=0)
    lags = {f"s0/{at}": {"w1": 0.0} for at in range(4)}
    prior = Assignment(active=dict.fromkeys(lags, "w1"), warmup={"s0/0": ("w2",), "s0/1": ("w2",)})
    for previous in (None, prior):
        made = place_instances(stateful(4), workers(2), lags, settings, previous=previous)
        assert drawn(made) == {"w1": "0 1 2 3 / - / -"}
        assert {moved.how for moved in made.movements} == {"wait"}
        assert not made.follow_up


def test_one_warm_up_at_a_time_comes_to_rest() -> None:
    """4:0 to 2:2, one after the other."""
    cluster = Cluster(stateful(4), workers(1), Settings(strategy="seed", acceptable_recovery_lag=100, max_warmups=1))
    cluster.settle()
    cluster.join(*workers(1, first=2))
    rounds = cluster.settle()
    assert rounds <= 4
    assert drawn(cluster.history[-1]) == {"w1": "2 3 / - / -", "w2": "0 1 / - / -"}


def test_while_not_if() -> None:
    """Two standbys each on three workers: every worker has every instance."""
    settings = Settings(strategy="seed", num_standbys=2)
    made = place_instances(stateful(3), workers(3), {}, settings)
    assert drawn(made) == {"w1": "0 / 1 2 / -", "w2": "1 / 0 2 / -", "w3": "2 / 0 1 / -"}


def test_the_least_rank_decides_before_balance() -> None:
    """Nobody has caught up: w2 is least behind on both, so has both; a movement of one is proposed."""
    lags = {f"s0/{at}": {"w1": 900.0, "w2": 500.0} for at in range(3)}
    assert drawn(place_instances(stateful(3), workers(2), lags, SEED)) == {"w1": "- / - / 0", "w2": "0 1 2 / - / -"}


def test_stateless_instances_level_the_actives() -> None:
    """3:0 stateful; of four stateless ones three go to w2, then it is 3:3 and the first takes the last."""
    lags = {f"s0/{at}": {"w1": 0.0} for at in range(3)}
    made = place_instances([*stateful(3), *stateless(4)], workers(2), lags, SEED)
    assert drawn(made) == {"w1": "f/3 0 1 2 / - / -", "w2": "f/0 f/1 f/2 / - / 0"}


def test_a_prior_assignment_that_is_as_even_is_kept() -> None:
    prior = Assignment(active={"s0/0": "w2", "s0/1": "w1"})
    lags = {"s0/0": {"w1": 0.0, "w2": 0.0}, "s0/1": {"w1": 0.0, "w2": 0.0}}
    assert place_instances(stateful(2), workers(2), lags, SEED, previous=prior).assignment == prior


def test_a_prior_assignment_is_no_candidate_if_a_worker_is_gone_or_a_standby_missing() -> None:
    lags = {"s0/0": {"w1": 0.0}, "s0/1": {"w2": 0.0}}
    fresh = {"s0/0": "w1", "s0/1": "w2"}
    gone = Assignment(active={"s0/0": "w9", "s0/1": "w1"})
    assert place_instances(stateful(2), workers(2), lags, SEED, previous=gone).assignment.active == fresh
    bare = Assignment(active={"s0/0": "w2", "s0/1": "w1"})
    settings = Settings(strategy="seed", acceptable_recovery_lag=100, num_standbys=1)
    assert place_instances(stateful(2), workers(2), lags, settings, previous=bare).assignment.active == fresh


def test_w2_comes_before_w10() -> None:
    made = place_instances(stateful(2), [*workers(1, first=10), *workers(1, first=2)], {}, SEED)
    assert made.assignment.active == {"s0/0": "w2", "s0/1": "w10"}
