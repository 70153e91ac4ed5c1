"""The longest path from each group to the end, in seconds."""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.plan.grouping.coarsest import find_groups
from airflow_dagsched.plan.remaining_paths import measure_remaining_s
from tests.plan.drawn import drawn


def test_starts_steps_and_ordinary_tasks_count() -> None:
    """a (10) ══> b (5) ──> (t 60) ──> c (30); d (100)."""
    flow = drawn("a == b; b -- t; t -- c", tasks="t", a={"runtime_s": 10}, b={"runtime_s": 5}, c={"runtime_s": 30},
                 d={"runtime_s": 100, "isolate": True})  # fmt: skip
    flow = replace(flow, tasks=tuple(replace(task, runtime_s=60.0) for task in flow.tasks))
    assert measure_remaining_s(flow, find_groups(flow).groups, 8.0) == {
        "launch_a": 8 + 10 + 5 + 60 + 8 + 30,
        "launch_c": 8 + 30,
        "launch_d": 8 + 100,
    }


def test_of_steps_side_by_side_the_longer_path_counts() -> None:
    flow = drawn("a == b; a == c", a={"runtime_s": 1}, b={"runtime_s": 5}, c={"runtime_s": 7})
    assert measure_remaining_s(flow, find_groups(flow).groups, 8.0) == {"launch": 8 + 1 + 7}


def test_predicted_seconds_count_as_they_are() -> None:
    flow = drawn("a; b", b={"isolate": True})
    groups = find_groups(flow).groups
    assert measure_remaining_s(flow, groups, 8.0, known_s={"launch_a": 77.0}) == {"launch_a": 77.0, "launch_b": 9.0}


def test_a_loop_counts_all_its_steps() -> None:
    flow = drawn("a == b; b -- a", a={"repeat": True, "runtime_s": 2}, b={"repeat": True, "runtime_s": 3})
    assert measure_remaining_s(flow, find_groups(flow).groups, 8.0) == {"launch": 8 + 5}
