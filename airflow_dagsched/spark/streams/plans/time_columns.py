"""Columns that have an event time, or something made of it: found by following what expressions take from where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from airflow_dagsched.spark.streams.plans.tree import Node, find_kind

_TICKS = 1_000_000
"""In a second: Spark counts windows in microseconds."""


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """What is known of a column. Times are in seconds."""

    part: Literal["time", "window", "start", "end", "session"]
    name: str
    of: str = ""
    """The column that a window was made of; as the author writes it."""
    bounded: bool = True
    """Made of the event time, so that the watermark ends it; else of another moment."""
    length_s: float = 0.0
    slide_s: float = 0.0
    start_s: float = 0.0
    optional: bool = False
    """Null where an outer join found no row."""

    @property
    def ends_state(self) -> bool:
        """Whether Spark forgets a key with this column once the watermark has passed it."""
        return self.bounded and self.part in ("time", "window")


Columns = Mapping[int, TimeColumn]
"""By Spark's number of the expression."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of a node's rows."""

    id: int
    name: str


def read_attribute(node: Node) -> Attribute:
    """The column that an attribute, or an expression with a name, is."""
    return Attribute(node.fields["exprId"]["id"], node.fields["name"])


def resolve(expression: Node, columns: Columns) -> TimeColumn | None:
    """What the expression is, of these columns; None: nothing that has to do with time, or is not known to."""
    match expression.kind:
        case "AttributeReference":
            return columns.get(expression.fields["exprId"]["id"])
        case "Alias":
            found = resolve(expression.children[0], columns)
            return found and replace(found, name=expression.fields["name"])
        case "GetStructField":
            return _take_field(expression, columns)
        case "CreateNamedStruct":
            return _read_window(expression, columns)
        case "PreciseTimestampConversion":
            return _read_window_time(expression, columns)
    return None


def list_new_windows(expressions: Sequence[Node], columns: Columns) -> list[TimeColumn]:
    """Windows of the event time that are made among these expressions, not only passed on."""
    bare = [each.children[0] if each.kind == "Alias" else each for each in expressions]
    found = [resolve(each, columns) for each in bare if each.kind == "CreateNamedStruct"]
    return [window for window in found if window and window.part == "window" and window.bounded]


def merge_columns(found: Sequence[TimeColumn | None]) -> TimeColumn | None:
    """What a column is whose rows come from several places; None: not the same everywhere."""
    first = found[0]
    if first is None or any(each is None or replace(each, name=first.name, of=first.of) != first for each in found):
        return None
    return first


def _take_field(expression: Node, columns: Columns) -> TimeColumn | None:
    window = resolve(expression.children[0], columns)
    if window is None or window.part != "window":
        return None
    return replace(window, part="end" if expression.fields["ordinal"] else "start")


def _read_window(struct: Node, columns: Columns) -> TimeColumn | None:
    names = [child.fields.get("value") for child in struct.children[::2]]
    start = _skip_marks(struct.children[1])
    if names != ["start", "end"] or start.kind != "PreciseTimestampConversion":
        return None
    remainder = find_kind(start, "Remainder")
    if remainder is None:
        return TimeColumn("session", "session_window")
    # (moment - offset) % slide, and the end as start + length.
    since, slide = remainder.children
    moment, offset = since.children
    length = _skip_marks(struct.children[3]).children[0].children[1]
    of = resolve(moment.children[0], columns)
    return TimeColumn(
        "window",
        "window",
        of=moment.children[0].fields.get("name", "an expression"),
        bounded=moment.children[0].kind == "AttributeReference" and of is not None and of.part == "time" and of.bounded,
        length_s=_read_seconds(length),
        slide_s=_read_seconds(slide),
        start_s=_read_seconds(offset),
    )


def _read_window_time(expression: Node, columns: Columns) -> TimeColumn | None:
    # The last microsecond of a window, as ``window_time`` has it: end - 1.
    less = expression.children[0]
    if less.kind != "Subtract" or less.children[0].kind != "PreciseTimestampConversion":
        return None
    end = resolve(less.children[0].children[0], columns)
    if end is None or end.part != "end":
        return None
    return TimeColumn("time", "window_time", bounded=end.bounded, optional=end.optional)


def _skip_marks(node: Node) -> Node:
    while node.kind in ("KnownNullable", "KnownNotNull"):
        node = node.children[0]
    return node


def _read_seconds(literal: Node) -> float:
    return int(literal.fields["value"]) / _TICKS
