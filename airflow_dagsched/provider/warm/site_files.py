"""Files that an application reads as it starts and that no launch names: those of its site, its Spark and its Java."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from airflow_dagsched.class_archives.look import find_release
from airflow_dagsched.class_archives.spark_home import find_java, find_spark_home
from airflow_dagsched.launch.protocol.class_path import DRIVER_CLASS_PATH, EXECUTOR_CLASS_PATH

SPARK_CONF, CONF_FOLDERS = "SPARK_CONF_DIR", ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Variables that name folders of settings."""
ALL_JARS = "*"
"""Ends an entry of a class path that stands for the jars of a folder."""


def list_site_files(spark_submit: Path, settings: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[Path]:
    """Those that ``spark_submit`` would have Java read; some may be none, or folders."""
    home, java = find_spark_home(spark_submit, environment), find_java(environment)
    conf = environment.get(SPARK_CONF) or (str(home / "conf") if home else "")
    for folder in dict.fromkeys((conf, *(environment.get(name, "") for name in CONF_FOLDERS))):
        yield from _list_entry(folder)
    for name in (DRIVER_CLASS_PATH, EXECUTOR_CLASS_PATH):
        for entry in settings.get(name, "").split(os.pathsep):
            yield from _list_entry(entry)
    if home is not None:
        # Hundreds: where one is put, taken away or replaced, their folder changes.
        yield home / "jars"
    if java is not None:
        yield find_release(java)


def _list_entry(entry: str) -> list[Path]:
    """What an entry of a class path stands for: a jar, or what is in a folder, though not in folders of that."""
    path = Path(entry.removesuffix(ALL_JARS))
    try:
        return list(path.iterdir()) if entry else []
    except OSError:  # no folder, or none that this user may look into
        return [path]
