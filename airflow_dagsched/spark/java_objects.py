"""Java's classes, and Scala's collections and functions, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_PATTERN = "org.apache.spark.sql.catalyst.trees.TreePattern"
_HELPER = "org.apache.spark.api.python.PythonUtils"
_HANDLES = "java.lang.invoke.MethodHandles"


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


def make_scala_map(session: SparkSession | SparkContext, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """Scala's map of these: a function of its keys, and so a rule for trees that is none of Python's."""
    table = find_class(session, "java.util.HashMap")()
    for key, value in pairs:
        table.put(key, value)
    return find_class(session, _HELPER).toScalaMap(table)


def find_function(session: SparkSession, owner: str, method: str, returns: str) -> Any:
    """Scala's function that calls this method, without arguments, of what it is given. Classes by their whole names.

    ::

        plan.map(function)      one message, where a walk takes four for each node

    Java makes each once in a process, out of a handle to the method.
    """
    return _call_method(session._jvm, owner, method, returns)


def find_identity(session: SparkSession) -> Any:
    """Scala's function that returns what it is given."""
    return _return_given(session._jvm)


def make_action(session: SparkSession, target: Any, *calls: tuple[str, str, str]) -> Any:
    """Scala's function of no arguments: it calls a method of ``target``, the next one of what that returns, and so on.

    For what has to run inside another call to Java. Java wraps what it throws, if that is neither a
    ``RuntimeException`` nor an ``Error``.

    :param calls: of each method its class, its name and the class of what it returns, by their whole names.
    """
    jvm = session._jvm
    handles = _find(jvm, _HANDLES)
    handle = reduce(handles.filterReturnValue, [_find_method(jvm, *call) for call in calls])
    return _make_function(jvm, handle.bindTo(target), "scala.Function0")


@cache
def _call_method(jvm: Any, owner: str, method: str, returns: str) -> Any:
    return _make_function(jvm, _find_method(jvm, owner, method, returns))


@cache
def _find_method(jvm: Any, owner: str, method: str, returns: str) -> Any:
    kind = _find(jvm, "java.lang.invoke.MethodType").methodType(_find_kind(jvm, returns))
    return _find(jvm, _HANDLES).publicLookup().findVirtual(_find_kind(jvm, owner), method, kind)


@cache
def _return_given(jvm: Any) -> Any:
    return _make_function(jvm, _find(jvm, _HANDLES).identity(_find_kind(jvm, "java.lang.Object")))


def _make_function(jvm: Any, handle: Any, kind: str = "scala.Function1") -> Any:
    proxies = _find(jvm, "java.lang.invoke.MethodHandleProxies")
    return proxies.asInterfaceInstance(_find_kind(jvm, kind), handle)


def _find_kind(jvm: Any, name: str) -> Any:
    return _find(jvm, "java.lang.Long").TYPE if name == "long" else _find(jvm, name)._java_lang_class
