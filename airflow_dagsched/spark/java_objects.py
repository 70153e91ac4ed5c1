"""Java's classes, and Scala's collections, from Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_PATTERN = "org.apache.spark.sql.catalyst.trees.TreePattern"
_HELPER = "org.apache.spark.api.python.PythonUtils"


def find_class(session: SparkSession | SparkContext, name: str) -> Any:
    """The class of this whole name, with "$" before one that is inside another.

    ``jvm.org.apache...`` is a message for each part, and Java looks for a class of that name in all its jars; so it
    does for a name without its package.
    """
    return _find(session._jvm, name)


@cache
def _find(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)


def find_pattern(session: SparkSession, name: str) -> Any:
    """Spark's mark of this name, by which a tree says in one word that a kind of node is nowhere in it."""
    return _find_pattern(session._jvm, name)


@cache
def _find_pattern(jvm: Any, name: str) -> Any:
    return getattr(_find(jvm, _PATTERN), name)()


def find_object(session: SparkSession | SparkContext, name: str) -> Any:
    """Scala's object of this name."""
    return find_class(session, f"{name}$").__getattr__("MODULE$")


def iterate_items(sequence: Any) -> Iterator[Any]:
    """The items of a Scala sequence."""
    # Py4J hands none over as a list: each item is a call, made when it is asked for.
    return (sequence.apply(at) for at in range(sequence.size()))


def make_sequence(session: SparkSession, items: list[Any]) -> Any:
    """Scala's sequence of these."""
    return find_class(session, _HELPER).toSeq(items)


def make_scala_map(session: SparkSession | SparkContext, items: Mapping[Any, Any]) -> Any:
    """Scala's map of these: a function of its keys, and so a rule for trees that is none of Python's."""
    table = find_class(session, "java.util.HashMap")()
    for key, value in items.items():
        table.put(key, value)
    return find_class(session, _HELPER).toScalaMap(table)
