"""Noise by the slowest instance: against instances drawn one by one.

32 x 100 s on 32 cores, noise 0.5: the mean of all is 100 s, but the step ends with the slowest of them, after 260 s.
"""

from __future__ import annotations

import random
from statistics import mean

import pytest

from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.simulate.run import simulate_works
from airflow_dagsched.plan.simulate.slowest_instances import ComputedStep, Computing
from airflow_dagsched.plan.simulate.values import POLICIES, Conditions, Work
from tests.plan.drawn import drawn, standalone

NOISE, RUNS = 0.5, 2_000


def draw_one_by_one(instances: int, lanes: int, rng: random.Random) -> float:
    """The end of a step whose instances take 1 s on average, each on the lane that is free first."""
    ends = [0.0] * lanes
    for _ in range(instances):
        ends.sort()
        ends[0] += rng.lognormvariate(-NOISE * NOISE / 2, NOISE)
    return max(ends)


@pytest.mark.parametrize(("instances", "lanes"), [(1, 1), (32, 32), (32, 8), (7, 3)])
def test_a_step_ends_with_its_slowest_instance(instances: int, lanes: int) -> None:
    ours, theirs = random.Random(1), random.Random(2)
    group = Computing((ComputedStep(instances, lanes, 100.0, ()),), 1)
    waves = -(-instances // lanes)
    drawn_s = mean(waves * group.draw_factor(NOISE, ours) for _ in range(RUNS))
    assert drawn_s == pytest.approx(mean(draw_one_by_one(instances, lanes, theirs) for _ in range(RUNS)), rel=0.03)


def test_of_very_many_instances_only_the_last_wave_is_drawn() -> None:
    group = Computing((ComputedStep(100_000, 1_000, 1.0, ()),), 1)
    rng = random.Random(1)
    drawn_s = mean(100 * group.draw_factor(NOISE, rng) for _ in range(100))
    assert 99 + 3 < drawn_s < 99 + 6, "the largest of 1,000 is 4 to 5 times the mean"


def test_steps_side_by_side_end_with_the_later_one() -> None:
    """a ══> c, b on two slots: c follows a while b still runs; one after another on one slot."""
    steps = (ComputedStep(1, 1, 10.0, (2,)), ComputedStep(1, 1, 30.0, ()), ComputedStep(1, 1, 10.0, ()))
    rng = random.Random(1)
    beside = mean(30 * Computing(steps, 2).draw_factor(NOISE, rng) for _ in range(RUNS))
    after = mean(50 * Computing(steps, 1).draw_factor(NOISE, rng) for _ in range(RUNS))
    resident = mean(30 * Computing(steps, 0).draw_factor(NOISE, rng) for _ in range(RUNS))
    assert after == pytest.approx(50, rel=0.03), "what adds up evens out"
    assert resident < beside, "a and c together against b, or each of them"
    assert 30 < resident < 40


def test_a_wide_step_is_late_and_its_start_is_not() -> None:
    """8 s of start and 100 s of 32 instances at once: nobody's luck makes the start longer."""
    flow, cluster = drawn("a", a={"parallelism": 32, "runtime_s": 100}), standalone(16, 16)
    asked = Work(plan(flow, cluster), flow)
    runs = [simulate_works([asked], cluster, Conditions(noise=NOISE, seed=at), POLICIES["plan"]) for at in range(300)]
    rng = random.Random(3)
    expected = 8 + 100 * mean(draw_one_by_one(32, 32, rng) for _ in range(RUNS))
    assert mean(run.makespan_s for run in runs) == pytest.approx(expected, rel=0.04)
    assert 240 < expected < 300
    still = simulate_works([asked], cluster, Conditions(), POLICIES["plan"], Settings())
    assert still.makespan_s == asked.plan.makespan_s
