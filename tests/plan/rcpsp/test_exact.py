"""The proof by CP-SAT, where the extra is installed."""

from __future__ import annotations

import random

import pytest

from airflow_dagsched.plan.rcpsp.schedule import Schedule, schedule
from benchmarks.rcpsp_check import find_violations
from benchmarks.rcpsp_exact import solve_exactly
from tests.plan.rcpsp.drawn import drawn, makespan, random_project, shortest

pytest.importorskip("ortools")


@pytest.mark.parametrize("seed", range(10))
def test_the_proved_schedule_is_the_shortest(seed: int) -> None:
    project = random_project(random.Random(seed), 6)
    made = solve_exactly(project, schedule(project, effort=0))
    assert find_violations(project, made.starts) == []
    assert makespan(project, made.starts) == made.makespan == made.lower_bound == shortest(project)


def test_without_work_the_hint_stays() -> None:
    project = random_project(random.Random(1), 30)
    hint = schedule(project, effort=0)
    assert solve_exactly(project, hint, work=0.0).makespan <= hint.makespan


def test_what_is_proved_already_is_not_solved_again() -> None:
    project = drawn("a:1x1", capacities=(1,))
    hint = Schedule((0,), 1, 1)
    assert solve_exactly(project, hint) is hint
