"""Folders of any file system that fsspec knows, listed without Spark: local disks, HDFS, object stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec import Struct

from airflow_dagsched.plan.pruning.layout import Entry, Lister
from airflow_dagsched.provider.clusters.call_with_timeout import call_with_timeout

DEFAULT_FS = "spark.hadoop.fs.defaultFS"
HDFS = "hdfs://"
"""Where a listing says who holds the blocks, too."""
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names for what fsspec calls otherwise."""


def resolve_location(location: str, conf: Mapping[str, str], master: Callable[[], str]) -> str:
    """Where fsspec finds what Spark finds at ``location``.

    Raises ``ValueError`` where only the cluster knows which file system a path without a scheme is on.
    """
    scheme, colon, rest = location.partition(":")
    if colon and "/" not in scheme:
        # file:/data is short for file:///data
        return f"{_SCHEMES.get(scheme, scheme)}:{rest}" if rest.startswith("//") else rest
    if DEFAULT_FS in conf:
        return resolve_location(f"{conf[DEFAULT_FS].rstrip('/')}{location}", {}, master)
    # Its default file system is in a core-site.xml that this machine need not have.
    if master().startswith("yarn"):
        raise ValueError(
            f"{location} names no file system: on YARN that is the cluster's own; write file:// or hdfs://"
        )
    return location


Opened = tuple[Lister, str]
"""A lister, and the path that is meant on its file system."""
Open = Callable[[str], AbstractContextManager[Opened]]
"""Opens the lister of the file system that a location is on."""


class FileLister(Struct, frozen=True):
    """Lists folders of one file system. Who holds their blocks it does not say."""

    system: Any
    """An ``fsspec`` file system."""

    @classmethod
    def of(cls, location: str, **options: Any) -> tuple[FileLister, str]:
        """The lister of the file system that ``location`` is on, and its path there; ``options`` are fsspec's."""
        from fsspec.core import url_to_fs

        system, path = url_to_fs(location, **options)
        return cls(system), path

    def list_children(self, folder: str) -> Iterator[Entry]:
        """What is in ``folder``, as it is now. Raises ``FileNotFoundError``."""
        # ``refresh``: fsspec keeps file systems and their listings for the whole process, and may answer with what was.
        for found in self.system.ls(folder, detail=True, refresh=True):
            path = found["name"].rstrip("/")
            if path != folder.strip("/") and path != folder.rstrip("/"):  # object stores may list the folder itself
                # The entry of a link says nothing of what it leads to.
                is_folder = self.system.isdir(path) if found.get("islink") else found["type"] == "directory"
                yield Entry(path.rpartition("/")[2], is_folder, 0 if is_folder else found["size"] or 0)


class TimelyLister(Struct, frozen=True):
    """The same, of a file system that may not answer: a mount whose server is gone, a store behind a dead network."""

    lister: FileLister
    within_s: float
    """Seconds that each folder has to be listed in."""

    @classmethod
    def of(cls, location: str, within_s: float) -> tuple[TimelyLister, str]:
        """As :meth:`FileLister.of`; raises :class:`ClusterUnknown`."""
        lister, path = call_with_timeout(lambda: FileLister.of(location), within_s, location)
        return cls(lister, within_s), path

    def list_children(self, folder: str) -> list[Entry]:
        """What is in ``folder``, as it is now. Raises ``FileNotFoundError``, :class:`ClusterUnknown`."""
        return call_with_timeout(lambda: list(self.lister.list_children(folder)), self.within_s, folder)


def open_local_lister(location: str) -> AbstractContextManager[Opened]:
    """By what this machine has: fsspec."""
    return nullcontext(FileLister.of(location))
