"""The checker names every rule that a schedule breaks."""

from __future__ import annotations

from benchmarks.rcpsp_check import find_violations
from tests.plan.rcpsp.drawn import drawn

PAIR = drawn("a:2x2 b:3x1", "a-b", capacities=(2,))
"""a ──> b"""


def test_a_schedule_breaks_no_rule() -> None:
    assert find_violations(PAIR, (0, 2)) == []


def test_a_schedule_has_a_start_for_each_activity() -> None:
    assert find_violations(PAIR, (0,)) == ["1 starts for 2 activities"]


def test_nothing_starts_before_what_is_above_it_has_ended() -> None:
    assert find_violations(PAIR, (-1, 0)) == [
        "activity 0 starts at -1",
        "activity 1 starts at 0, before 0 ends at 1",
        "resource 0 has 2, but 3 are held at 0",
    ]


def test_no_resource_is_held_twice() -> None:
    project = drawn("a:2x1,0 b:2x1,1 c:1x1,1", capacities=(2, 1))
    assert find_violations(project, (0, 1, 1)) == [
        "resource 0 has 2, but 3 are held at 1",
        "resource 1 has 1, but 2 are held at 1",
    ]


def test_an_activity_may_start_when_another_ends() -> None:
    assert find_violations(drawn("a:2x2 b:0x2 c:1x2", capacities=(2,)), (0, 1, 2)) == []
