"""Which of the flow's windows a row is of. The oracle counts the flow's windows one by one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.spark.streams.output_window import OutputWindow, Part

WINDOW = 60
COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
PARTS: st.SearchStrategy[Part] = st.sampled_from(["time", "window", "start", "end"])
ENDS = st.integers(-3, 6).map(lambda number: number * WINDOW)


def find_by_counting(part: Part, moment: float, length: float) -> float:
    """The end of the flow's window that has the row, or in which the row's own window ends."""
    ends = range(-10 * WINDOW, 20 * WINDOW, WINDOW)
    if part == "time":
        return next(end for end in ends if end > moment)
    return next(end for end in ends if end >= moment + (length if part == "start" else 0))


@given(part=PARTS, moment=st.integers(-200, 400), length=st.sampled_from([15, 30, 60, 120]))
def test_a_row_is_of_the_window_in_which_it_or_its_own_window_ends(part: Part, moment: int, length: int) -> None:
    window = OutputWindow("w", part, length)
    assert window.find_flow_window(moment, WINDOW) == find_by_counting(part, moment, length)


@given(part=PARTS, moment=st.integers(-200, 400), after=st.none() | ENDS, upto=st.none() | ENDS)
def test_bounds_let_in_exactly_the_rows_of_these_windows(
    part: Part, moment: int, after: int | None, upto: int | None
) -> None:
    window = OutputWindow("w", part, 30)
    let_in = all(COMPARE[how](moment, limit) for how, limit in window.bound(after, upto))
    end = window.find_flow_window(moment, WINDOW)
    assert let_in == ((after is None or end > after) and (upto is None or end <= upto))


def test_a_column_is_named_as_sql_wants_it() -> None:
    assert OutputWindow("odd`name", "window").path == "`odd``name`.`end`"
    assert OutputWindow("a.b", "time").path == "`a.b`"
