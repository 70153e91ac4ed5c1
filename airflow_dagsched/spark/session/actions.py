"""Tells a step's turn of the actions its author's code begins, before they execute anything.

A lazily handed DataFrame that an author counts, shows and then returns would be executed three times; heard
of in time, it is kept at the first and read from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, wraps
from types import FunctionType
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from airflow_dagsched.spark.session.current import CURRENT

# What executes, of PySpark 4's DataFrame, or has its plan made for good. A name that is left out costs a second
# execution, never rows.
METHODS = (
    "approxQuantile", "cache", "checkpoint", "collect", "corr", "count", "cov", "crosstab", "foreach",
    "foreachPartition", "freqItems", "isEmpty", "localCheckpoint", "mergeInto", "pandas_api", "persist", "show", "tail",
    "take", "toArrow", "toJSON", "toLocalIterator", "toPandas", "writeTo",
)  # fmt: skip
PROPERTIES = ("rdd", "write")
# A comment may go on after a backslash at the end of its line, or hold another: behind that, nothing is recognised.
_COMMENTS = r"(?>\s|--(?>\\\r?\n|[^\r\n])*|/\*(?>(?!/\*|\*/).)*\*/)*+"
_QUERY = re.compile(
    _COMMENTS
    + r"(\(|(select|values|table|show|describe|explain|set)\b|(with|from)\b(?!.*\b(insert|merge|update|delete)\b))",
    re.IGNORECASE | re.DOTALL,
)


def listen_to_actions() -> None:
    """Hook the actions of DataFrames and the statements of ``spark.sql``, once a process."""
    # ``wraps`` leaves this mark: hooked twice, an action would be heard of twice.
    if hasattr(DataFrame.count, "__wrapped__"):
        return
    for name in METHODS:
        setattr(DataFrame, name, _wrap_method(getattr(DataFrame, name), lambda df, *_: df))
    for name in PROPERTIES:
        setattr(DataFrame, name, property(_wrap_method(_find_getter(getattr(DataFrame, name)), lambda df: df)))
    SparkSession.sql = _wrap_statements(SparkSession.sql)  # type: ignore[method-assign]


def _find_getter(attribute: Any) -> Callable[..., Any]:
    # PySpark has both kinds of property, and which it is changes with its version.
    return attribute.func if isinstance(attribute, cached_property) else attribute.fget


def _wrap_method(original: Callable[..., Any], acted_on: Callable[..., DataFrame]) -> Callable[..., Any]:
    @wraps(original)
    def act(self: Any, *args: Any, **kwargs: Any) -> Any:
        _tell_turn(acted_on(self))
        return original(self, *args, **kwargs)

    return _place_in_pyspark(act, original)


def _place_in_pyspark(hook: Callable[..., Any], original: Any) -> Callable[..., Any]:
    """The hook, as if its code stood where the hooked method's does.

    PySpark names a stage after the line above its own outermost frame: else each author's stage, in Spark's page and
    in what we say of a step that gets nowhere, would be ``collect at actions.py``.
    """
    assert isinstance(hook, FunctionType)
    place = original.__code__
    hook.__code__ = hook.__code__.replace(
        co_filename=place.co_filename, co_name=place.co_name, co_firstlineno=place.co_firstlineno
    )
    return hook


def is_query(statement: str) -> bool:
    """Whether the statement is a DataFrame, or looks only at the catalog; the others execute at once.

    One that isn't recognised executes: then its inputs are kept whole, which costs time at most.
    """
    return _QUERY.match(statement) is not None


def _wrap_statements(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def sql(self: SparkSession, *args: Any, **kwargs: Any) -> Any:
        if not is_query(args[0] if args else kwargs["sqlQuery"]):
            _tell_turn(None)
        return original(self, *args, **kwargs)

    return _place_in_pyspark(sql, original)


def _tell_turn(df: DataFrame | None) -> None:
    on_action = CURRENT.on_action
    if on_action is not None:
        CURRENT.on_action = None  # what we do about it is no action of the author's
        try:
            on_action(df)
        finally:
            CURRENT.on_action = on_action
