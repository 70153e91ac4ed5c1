"""The two schemes: known schedules with their drawings, then brute force and the checker as oracles."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.plan.rcpsp.lists import cross_lists, list_back, list_onward, sort_by_rank
from airflow_dagsched.plan.rcpsp.parallel import schedule_in_parallel
from airflow_dagsched.plan.rcpsp.project import Network, Project, build_network, mirror_network, order_by_activity
from airflow_dagsched.plan.rcpsp.serial import schedule_serially
from benchmarks.rcpsp_check import find_violations
from tests.plan.rcpsp.drawn import drawn, place_one_by_one, projects


def starts_of(net: Network, ends: list[int]) -> tuple[int, ...]:
    return order_by_activity(net, [end - length for end, length in zip(ends, net.durations, strict=True)])


def is_a_list(net: Network, sequence: list[int]) -> bool:
    place = {at: position for position, at in enumerate(sequence)}
    edges = ((at, after) for at, nexts in enumerate(net.below) for after in nexts)
    return len(place) == len(net) and all(place[at] < place[after] for at, after in edges)


def shaken(net: Network, seed: int) -> list[int]:
    rng = random.Random(seed)
    return sort_by_rank(net, [rng.random() for _ in range(len(net))])


def test_the_serial_scheme_fills_gaps() -> None:
    """
    2 │ │bbbb│      c is last in the list, but there is room beside a
    1 │aac│bb│
    """
    net = build_network(drawn("a:2x1 b:2x2 c:2x1", "a-b", capacities=(2,)))
    assert starts_of(net, schedule_serially(net, [0, 2, 1])) == (0, 2, 0)


def test_the_parallel_scheme_never_waits() -> None:
    """
    3 │bbbbb│ccc│    a b start at once; c, which needs all three, would end sooner before b
    1 │a│   │ccc│
    """
    net = build_network(drawn("a:1x1 b:5x1 c:3x3", "a-c", capacities=(3,)))
    assert starts_of(net, schedule_in_parallel(net, [0, 2, 1])) == (0, 0, 5)


def test_the_most_urgent_of_all_demands_starts_first() -> None:
    net = build_network(drawn("a:1x2 b:1x1 c:1x2", capacities=(2,)))
    assert starts_of(net, schedule_in_parallel(net, [2, 1, 0])) == (2, 1, 0)


@given(projects(), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_the_serial_scheme_places_as_early_as_possible(project: Project, seed: int) -> None:
    net = build_network(project)
    sequence = shaken(net, seed)
    assert is_a_list(net, sequence)
    expected = place_one_by_one(project, [net.activities[at] for at in sequence])
    assert starts_of(net, schedule_serially(net, sequence)) == tuple(expected)


@given(projects(), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_schedules_without_delay_are_schedules(project: Project, seed: int) -> None:
    net = build_network(project)
    starts = starts_of(net, schedule_in_parallel(net, shaken(net, seed)))
    assert find_violations(project, starts) == []
    assert starts == tuple(
        place_one_by_one(project, sorted(range(len(starts)), key=lambda at: _by_start(net, starts, at)))
    )


def _by_start(net: Network, starts: tuple[int, ...], at: int) -> tuple[int, int]:
    """Ties of activities of no length in topological order."""
    return starts[at], list(net.activities).index(at)


@given(projects(), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_reading_to_and_fro_never_makes_a_schedule_longer(project: Project, seed: int) -> None:
    net = build_network(project)
    back = mirror_network(net)
    early = schedule_serially(net, shaken(net, seed))
    assert is_a_list(net, list_onward(net, early))
    assert is_a_list(back, list_back(net, early))
    late = schedule_serially(back, list_back(net, early))
    again = schedule_serially(net, list_back(back, late))
    spans = [max(ends, default=0) for ends in (early, late, again)]
    assert spans == sorted(spans, reverse=True)
    assert find_violations(project, starts_of(net, again)) == []


@given(projects(), st.integers(0, 99), st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_a_crossed_list_is_a_list(project: Project, seed: int, first: int, count: int) -> None:
    net = build_network(project)
    one, other = shaken(net, seed), shaken(net, seed + 1)
    child = cross_lists(one, other, first, count)
    assert is_a_list(net, child)
    assert child[:first] == one[:first]
