"""From project to schedule: right, as short as brute force finds, and the same every time."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.plan.rcpsp import search
from airflow_dagsched.plan.rcpsp.bounds import lower_bound
from airflow_dagsched.plan.rcpsp.project import Project, build_network
from airflow_dagsched.plan.rcpsp.schedule import Schedule, schedule
from benchmarks.rcpsp_check import find_violations
from tests.plan.rcpsp.drawn import drawn, makespan, projects, random_project, shortest


def test_no_activities_take_no_time() -> None:
    assert schedule(Project((), (), (), ())) == Schedule((), 0, 0)


def test_the_longest_remaining_path_goes_first() -> None:
    """
    a ──> b ──> c     one worker is kept busy by a b c (1 + 4 + 4), the other by d and e
    d, e
    """
    made = schedule(drawn("e:4x1 d:4x1 a:1x1 b:4x1 c:4x1", "a-b b-c", capacities=(2,)))
    assert made == Schedule((0, 4, 0, 1, 5), makespan=9, lower_bound=9)


def test_work_between_a_head_and_a_tail_bounds_the_makespan() -> None:
    """
    s(2) ──> a(3) ──> t(1)     one worker does a b c one after another, between s and t: 2 + 9 + 1;
         ──> b(3) ──>          the longest path is 2 + 3 + 1
         ──> c(3) ──>
    """
    project = drawn("s:2x0 a:3x1 b:3x1 c:3x1 t:1x0", "s-a s-b s-c a-t b-t c-t", capacities=(1,))
    assert lower_bound(build_network(project)) == 12


@pytest.mark.parametrize("seed", range(60))
def test_small_projects_are_solved_at_once(seed: int) -> None:
    project = random_project(random.Random(seed), 6)
    made = schedule(project)
    assert made.lower_bound <= shortest(project) == made.makespan


@given(projects(60), st.sampled_from([0, 500, 5000]))
@settings(max_examples=80, deadline=None)
def test_every_schedule_keeps_the_rules(project: Project, effort: int) -> None:
    made = schedule(project, effort=effort)
    assert find_violations(project, made.starts) == []
    assert made.lower_bound <= made.makespan == makespan(project, made.starts)


@given(projects(60))
@settings(max_examples=20, deadline=None)
def test_more_effort_finds_nothing_longer(project: Project) -> None:
    spans = [schedule(project, effort=effort).makespan for effort in (0, 100, 2_000)]
    assert all(more <= less for less, more in pairwise(spans))


@given(projects(40))
@settings(max_examples=20, deadline=None)
def test_equal_projects_have_equal_schedules(project: Project) -> None:
    shuffled = Project(
        project.durations,
        project.demands,
        tuple(tuple(reversed([*nexts, *nexts])) for nexts in project.successors),
        project.capacities,
    )
    assert schedule(project) == schedule(shuffled)


@given(projects(40))
@settings(max_examples=20, deadline=None)
def test_wide_projects_are_searched_without_delay(project: Project) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(search, "WIDEST_SERIAL", 0)
        made = schedule(project)
    assert find_violations(project, made.starts) == []
    assert made.makespan == makespan(project, made.starts)


@pytest.mark.parametrize(
    ("project", "message"),
    [
        (Project((1,), (), ((),), ()), "project: durations, demands and successors must be of one length, 1"),
        (Project((-1,), ((),), ((),), ()), "project: durations[0]: must not be negative: -1"),
        (Project((1,), ((1,),), ((),), ()), "project: demands[0]: must be 0 amounts, none negative: (1,)"),
        (Project((1,), ((),), ((1,),), ()), "project: successors[0]: must be positions below 1: (1,)"),
        (Project((1,), ((),), ((0,),), ()), "project: successors: activities must not wait for each other in a circle"),
    ],
)
def test_a_project_that_is_none_is_refused(project: Project, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        schedule(project)
    assert str(refused.value) == message


def test_an_activity_too_large_for_a_resource_is_refused() -> None:
    with pytest.raises(DoesNotFit, match="activity 0 does not fit: resource 1 needed 5, available 4"):
        schedule(drawn("a:1x1,5", capacities=(1, 4)))
