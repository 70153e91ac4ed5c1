"""Plans as Spark writes them, drawn by hand: as much of its JSON as is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = list[dict[str, Any]]
LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."


def write_node(kind: str, children: Sequence[Json] = (), **fields: Any) -> Json:
    """A node, and all that is below it."""
    head = {"class": LOGICAL + kind, "num-children": len(children), **fields}
    return [head, *(node for child in children for node in child)]


def write_column(number: int, name: str) -> Json:
    return write_node("AttributeReference", name=name, exprId={"id": number}, dataType="timestamp")


def write_number(value: float) -> Json:
    return write_node("Literal", value=str(round(value * 1_000_000)), dataType="long")


def write_name(value: str) -> Json:
    return write_node("Literal", value=value, dataType="string")


def convert(child: Json) -> Json:
    return write_node("PreciseTimestampConversion", [child])


def write_alias(number: int, name: str, child: Json) -> Json:
    return write_node("Alias", [child], name=name, exprId={"id": number})


def write_window(moment: Json, length: float, slide: float, start: float) -> Json:
    """``window(moment, length, slide, start)``, in seconds, as analysis leaves it."""
    since = write_node("Subtract", [convert(moment), write_number(start)])
    first = write_node("Subtract", [convert(moment), write_node("Remainder", [since, write_number(slide)])])
    end = convert(write_node("Add", [first, write_number(length)]))
    marked = [write_node("KnownNullable", [each]) for each in (convert(first), end)]
    return write_node("CreateNamedStruct", [write_name("start"), marked[0], write_name("end"), marked[1]])


def write_window_time(window: Json) -> Json:
    end = write_node("GetStructField", [window], ordinal=1)
    return convert(write_node("Subtract", [convert(end), write_number(1e-6)]))


def write_stream(*columns: Json) -> Json:
    """A source, with the flow's watermark on the first of its columns."""
    leaf = write_node("StreamingRelation", output=list(columns))
    return write_node("EventTimeWatermark", [leaf], eventTime=columns[0])


def write_project(child: Json, *expressions: Json) -> Json:
    return write_node("Project", [child], projectList=list(expressions))


def write_aggregate(child: Json, keys: Sequence[Json], made: Sequence[Json]) -> Json:
    return write_node("Aggregate", [child], groupingExpressions=list(keys), aggregateExpressions=list(made))
