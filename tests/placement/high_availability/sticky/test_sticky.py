"""Strategy ``sticky``, round by round. Each table has active / standby / warm-up, by worker."""

from __future__ import annotations

from collections import Counter

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.policy import place_instances
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.values import RUNNING, Lag
from tests.placement.high_availability.simulated import Cluster, drawn, stateful, stateless, workers

ONE_AT_A_TIME = Settings(max_warmups=1, acceptable_recovery_lag=100)
ONE_STANDBY = Settings(num_standbys=1, acceptable_recovery_lag=100)


def test_two_workers_become_three() -> None:
    """Only what the new one needs moves, one warm-up at a time: 2 of 6, where trunk moves 4."""
    cluster = Cluster(stateful(6), workers(2), ONE_AT_A_TIME)
    cluster.settle()
    cluster.join(*workers(1, first=3))
    assert cluster.settle() == 3
    assert [drawn(made) for made in cluster.history] == [
        {"w1": "0 2 4 / - / -", "w2": "1 3 5 / - / -", "w3": "- / - / 0"},
        {"w1": "2 4 / - / -", "w2": "1 3 5 / - / -", "w3": "0 / - / 1"},
        {"w1": "2 4 / - / -", "w2": "3 5 / - / -", "w3": "0 1 / - / -"},
    ]
    assert [[moved.reason for moved in made.movements] for made in cluster.history] == [
        [
            "warm-up: w3 has lag 100000, takes over at 100",
            "waits: w3 has lag 100000, all warm-ups are in use",
        ],
        [
            "hand-over: w1 gives it up, w3 takes it with lag 0",
            "warm-up: w3 has lag 100000, takes over at 100",
        ],
        ["hand-over: w2 gives it up, w3 takes it with lag 0"],
    ]


def test_a_dead_worker_is_replaced_by_its_standbys_at_once() -> None:
    cluster = Cluster(stateful(4), workers(2), ONE_STANDBY)
    cluster.settle()
    assert drawn(cluster.history[-1]) == {"w1": "0 2 / 1 3 / -", "w2": "1 3 / 0 2 / -"}
    cluster.leave("w1")
    assert cluster.settle() == 1
    assert drawn(cluster.history[-1]) == {"w2": "0 1 2 3 / - / -"}


def test_an_owner_that_is_behind_swaps_with_a_caught_up_standby() -> None:
    """w1 has lost its disk: w2 takes over, w1 restores as a standby; no warm-up is used."""
    prior = Assignment(active={"s0/0": "w1"}, standby={"s0/0": ("w2",)})
    lags: dict[str, dict[str, Lag]] = {"s0/0": {"w1": 100_000.0, "w2": 0.0}}
    made = place_instances(stateful(1), workers(2), lags, ONE_STANDBY, previous=prior)
    assert drawn(made) == {"w1": "- / 0 / -", "w2": "0 / - / -"}


def test_the_running_copy_stays_though_another_has_caught_up() -> None:
    lags: dict[str, dict[str, Lag]] = {"s0/0": {"w1": 0.0, "w2": RUNNING}}
    assert drawn(place_instances(stateful(1), workers(2), lags, Settings())) == {"w2": "0 / - / -"}


def test_a_slow_warm_up_goes_on_and_takes_no_second_one() -> None:
    """Its lag falls from round to round but is above the limit: nothing else is begun, nothing given up."""
    cluster = Cluster(stateful(4), workers(1), ONE_AT_A_TIME)
    cluster.settle()
    cluster.join(*workers(1, first=2))
    first = cluster.step()
    lags = cluster.lags()
    lags["s0/0"]["w2"] = 5_000.0
    again = place_instances(cluster.instances, cluster.workers, lags, ONE_AT_A_TIME, previous=first.assignment)
    assert again.assignment == first.assignment
    assert again.follow_up


def test_without_warm_ups_nothing_moves_and_nobody_is_asked_to_come_back() -> None:
    cluster = Cluster(stateful(4), workers(1), Settings(max_warmups=0, acceptable_recovery_lag=100))
    cluster.settle()
    cluster.join(*workers(1, first=2))
    made = cluster.step()
    assert drawn(made) == {"w1": "0 1 2 3 / - / -"}
    assert {moved.how for moved in made.movements} == {"wait"}
    assert not made.follow_up


def test_any_lag_will_do_where_the_limit_says_so() -> None:
    cluster = Cluster(stateful(4), workers(1), Settings(acceptable_recovery_lag=2.0**53))
    cluster.settle()
    cluster.join(*workers(1, first=2))
    assert cluster.settle() == 1
    assert drawn(cluster.history[-1]) == {"w1": "2 3 / - / -", "w2": "0 1 / - / -"}


def test_a_balance_factor_of_three_leaves_a_difference_of_three() -> None:
    """3:0 stays as it is, 4:0 does not."""
    settings = Settings(balance_factor=3, acceptable_recovery_lag=100)
    for count, moved in ((3, 0), (4, 1)):
        cluster = Cluster(stateful(count), workers(1), settings)
        cluster.settle()
        cluster.join(*workers(1, first=2))
        assert len(cluster.step().movements) == moved


def test_stateless_instances_stay_where_they_were() -> None:
    """They are dealt beside the target of the stateful ones, so no hand-over shifts them."""
    cluster = Cluster([*stateful(6), *stateless(4)], workers(2), ONE_AT_A_TIME)
    cluster.settle()
    cluster.join(*workers(1, first=3))
    cluster.settle()
    places = [
        {at: worker for at, worker in made.assignment.active.items() if at.startswith("f")} for made in cluster.history
    ]
    assert places[1:] == places[:-1]
    assert sorted(Counter(places[0].values()).values()) == [1, 1, 2]


def test_instances_of_a_step_are_spread() -> None:
    """A new worker takes one instance of each step, not all of one."""
    cluster = Cluster(stateful(30, steps=3), workers(9), Settings(acceptable_recovery_lag=100))
    cluster.settle()
    cluster.join(*workers(1, first=10))
    cluster.settle()
    assert cluster.last is not None
    steps = [at.partition("/")[0] for at, worker in cluster.last.active.items() if worker == "w10"]
    assert sorted(steps) == ["s0", "s1", "s2"]
