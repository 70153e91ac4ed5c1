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
    list_using_options,
    names_archive,
)

HERE = "local-cluster["
"""Begins the masters whose executors are this host's, and this user's, as the driver is."""


def give_driver(settings: Mapping[str, str], kind: Kind, file: str) -> dict[str, str]:
    """The settings of an application whose driver has the archive ``file``."""
    options = list_using_options(kind, file)
    return {**settings, DRIVER_DEFAULT: join_options(settings.get(DRIVER_DEFAULT, ""), options)}


def give_executors(settings: Mapping[str, str], kind: Kind, file: str) -> dict[str, str]:
    """The settings of an application whose executors have ``file``, unless the author names an archive for them."""
    before = settings.get(EXECUTOR_DEFAULT, "")
    if names_archive((before, settings.get(EXECUTOR_EXTRA, ""))):
        return dict(settings)
    return {**settings, EXECUTOR_DEFAULT: join_options(before, list_executor_options(kind, file))}
