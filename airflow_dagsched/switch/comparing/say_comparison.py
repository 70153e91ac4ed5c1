"""A comparison in words, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.switch.comparing.flow_comparison import Comparison, Difference
from airflow_dagsched.switch.comparing.summary import list_unlike_sums
from airflow_dagsched.switch.say import tell_window

ROUNDED = "sums of floating-point numbers differ in their last digits where rows come in another order"


def tell_comparison(found: tuple[Comparison, ...]) -> str:
    """All queries, line by line, each difference a line."""
    lines = [line for each in found for line in _tell_query(each)]
    return "".join(f"{line}\n" for line in lines or ["no query of this name is in both epochs"])


def describe_comparison(found: tuple[Comparison, ...]) -> list[dict[str, Any]]:
    """The same for programs, as JSON values."""
    return [encode_plain(each) for each in found]


def _tell_query(found: Comparison) -> Iterator[str]:
    epochs = f"{found.step}: epochs {found.old} and {found.new}"
    if found.upto is None or found.upto <= found.after:
        yield f"{epochs} have no window behind {tell_window(found.after)} in common yet"
        return
    where = f"windows behind {tell_window(found.after)} up to {tell_window(found.upto)}"
    yield f"{epochs}, {where}: {found.same} are the same, {len(found.differences)} differ"
    yield from (f"  {_tell_difference(each)}" for each in found.differences)
    if any(list_unlike_sums(each.old, each.new) for each in found.differences):
        yield f"  ({ROUNDED})"


def _tell_difference(found: Difference) -> str:
    old, new = found.old, found.new
    rows = f"{old.rows} and {new.rows} rows" if old.rows != new.rows else f"{old.rows} rows each"
    sums = [
        f"sum of {name} {old.sums.get(name) or 'none'} and {new.sums.get(name) or 'none'}"
        for name in list_unlike_sums(old, new)
    ]
    values = ["values differ"] if not sums and old.rows == new.rows else []
    return f"{tell_window(found.window)}: {', '.join([rows, *sums, *values])}"
