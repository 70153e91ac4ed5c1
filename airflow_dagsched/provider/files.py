"""Folders of any file system that fsspec knows, listed without Spark: local disks, HDFS, object stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from airflow_dagsched.plan.prune.layout import Entry


@dataclass(frozen=True, slots=True)
class FileLister:
    """Lists folders of one file system. Who holds their blocks it does not say."""

    system: Any
    """An ``fsspec`` file system."""

    @classmethod
    def of(cls, location: str, **options: Any) -> tuple[FileLister, str]:
        """The lister of the file system that ``location`` is on, and its path there; ``options`` are fsspec's."""
        from fsspec.core import url_to_fs

        system, path = url_to_fs(location, **options)
        return cls(system), path

    def children(self, folder: str) -> Iterator[Entry]:
        """What is in ``folder``, as it is now. Raises ``FileNotFoundError``."""
        for found in self.system.ls(folder, detail=True, refresh=True):
            path = found["name"].rstrip("/")
            if path != folder.strip("/") and path != folder.rstrip("/"):  # object stores may list the folder itself
                name, is_folder = path.rpartition("/")[2], found["type"] == "directory"
                yield Entry(name, is_folder, 0 if is_folder else found["size"] or 0)
