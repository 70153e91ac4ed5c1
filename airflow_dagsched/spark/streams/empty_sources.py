"""Sources of files over folders without a row: what a query makes of them is a checkpoint that has read nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from airflow_dagsched.launch.streams.batch_limits import FILE_LIMITS
from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.spark.files.store import name_local
from airflow_dagsched.spark.streams.prepared_checkpoint import BATCHES

_WITH_SCHEMA = ("parquet", "orc")
"""Formats whose files are never empty: there are rows to describe."""
_WHICH_FILES = FILE_LIMITS | {"pathglobfilter"}
"""Options that say which files are read, in small letters."""
_GLOB = frozenset("*?[{")


def empty_source(session: SparkSession, source: SourceSpec, folder: Path, partition: str) -> SourceSpec:
    """The source over a file for each batch, none of which has a row, in a folder that is made anew.

    Without any file Spark would execute no batch.

    :param partition: folder below its path in which its own files are: columns come from the names of such folders.
    """
    shutil.rmtree(folder, ignore_errors=True)
    _write_files(session, source, folder / partition)
    options = {name: value for name, value in source.options.items() if name.lower() not in _WHICH_FILES}
    return replace(source, path=name_local(folder), options={**options, "maxFilesPerTrigger": "1"})


def _write_files(session: SparkSession, source: SourceSpec, folder: Path) -> None:
    if source.format in _WITH_SCHEMA:
        rows = session.createDataFrame([], source.schema or "").coalesce(1)
        for _ in range(BATCHES):
            rows.write.format(source.format).mode("append").save(name_local(folder))
        return
    folder.mkdir(parents=True)
    for number in range(BATCHES):
        (folder / f"none-{number}.{source.format}").touch()


def find_partition(source: SourceSpec, file: str | None) -> str:
    """Folder below the source's path that a file of it is in, as far as columns come from its name; else empty.

    :param file: as Spark names it.
    """
    top = urlsplit(source.path or "").path
    if file is None or _GLOB.intersection(top):
        return ""
    folder = PurePosixPath(unquote(urlsplit(file).path)).parent
    below = folder.relative_to(top).parts if folder.is_relative_to(top) else ()
    return "/".join(part for part in below if "=" in part)
