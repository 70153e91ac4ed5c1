"""Reads of a step's declared tables, narrowed to the partitions it needs: Spark lists only those.

    spark.read.parquet("/data/flights")      needed: day=2013-01-15
    spark.read.option("basePath", "/data/flights").parquet("/data/flights/day=2013-01-15")

With the base path the partition columns stay. Where nothing is needed, one folder tells the columns, and its rows are
left out. What the author filters besides still holds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader

from airflow_dagsched.launch.protocol.tables import normalise_location
from airflow_dagsched.spark.files.store import join_path
from airflow_dagsched.spark.session.current import CURRENT
from airflow_dagsched.spark.session.observed import NO_GLOB

METHODS = ("csv", "json", "load", "orc", "parquet", "text")
NAMES = ("path", "paths")
"""Of their first parameter."""


def narrow_reads() -> None:
    """Hook the methods that read files, once a process."""
    # ``wraps`` leaves this mark: hooked twice, a read would be narrowed twice.
    if hasattr(DataFrameReader.load, "__wrapped__"):
        return
    for name in METHODS:
        original = getattr(DataFrameReader, name)
        # parquet(*paths) alone takes them one by one.
        setattr(DataFrameReader, name, _narrow_method(original, several=name == "parquet"))


def _narrow_method(original: Callable[..., DataFrame], *, several: bool) -> Callable[..., DataFrame]:
    """``several``: it takes its paths one by one."""

    @wraps(original)
    def read(self: DataFrameReader, *args: Any, **kwargs: Any) -> DataFrame:
        path = _find_path(args, kwargs, several=several)
        needed = CURRENT.needed.get(normalise_location(path)) if path is not None else None
        if path is None or needed is None:
            return original(self, *args, **kwargs)
        folders = [join_path(path, folder) for folder in needed.folders]
        # The base path keeps the partition columns, which are in folders' names alone.
        reader = self.option("basePath", path).option(NO_GLOB, "false")
        others = {name: value for name, value in kwargs.items() if name not in NAMES}
        found = original(reader, *(folders if several else [folders]), *args[1:], **others)
        return found.where("false") if needed.no_rows else found

    return read


def _find_path(args: tuple[Any, ...], kwargs: dict[str, Any], *, several: bool) -> str | None:
    """The one path that is read; None if it is not one."""
    given = args[0] if args else next((kwargs[name] for name in NAMES if name in kwargs), None)
    if isinstance(given, list | tuple) and len(given) == 1:
        given = given[0]
    return given if isinstance(given, str) and not (several and len(args) > 1) else None
