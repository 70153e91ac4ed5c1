"""Spark settings with archives of classes in them."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_dagsched.launch.class_archive.recipe import (
    DRIVER_DEFAULT,
    EXECUTOR_DEFAULT,
    EXECUTOR_EXTRA,
    Kind,
    join_options,
    list_executor_options,
    list_report_options,
    list_using_options,
    names_archive,
)
from airflow_dagsched.launch.protocol.class_path import DRIVER_CLASS_PATH, EXECUTOR_CLASS_PATH, join_class_paths

HERE = "local-cluster["
"""Begins the masters whose executors are this host's, and this user's, as the driver is."""


def give_driver(settings: Mapping[str, str], kind: Kind, file: str, jar: str = "", report: str = "") -> dict[str, str]:
    """The settings of an application whose driver has the archive ``file``, and ``jar`` behind its class path.

    :param report: the file that is to tell of a crash over it; empty: Java chooses.
    """
    options = (*list_using_options(kind, file), *(list_report_options(report) if report else ()))
    given = {**settings, DRIVER_DEFAULT: join_options(settings.get(DRIVER_DEFAULT, ""), options)}
    return _put_last(given, DRIVER_CLASS_PATH, jar)


def give_executors(settings: Mapping[str, str], kind: Kind, file: str, jar: str = "") -> dict[str, str]:
    """The same for executors, unless the author names an archive for them."""
    before = settings.get(EXECUTOR_DEFAULT, "")
    if names_archive((before, settings.get(EXECUTOR_EXTRA, ""))):
        return dict(settings)
    given = {**settings, EXECUTOR_DEFAULT: join_options(before, list_executor_options(kind, file))}
    return _put_last(given, EXECUTOR_CLASS_PATH, jar)


def _put_last(settings: dict[str, str], name: str, jar: str) -> dict[str, str]:
    # Before Spark's own jars, but an author's classes go before all of them.
    return {**settings, name: join_class_paths(settings.get(name, ""), jar)} if jar else settings
