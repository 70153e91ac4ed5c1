"""A lister of folders held in memory, which says what it was asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from airflow_dagsched.plan.pruning.layout import Entry


@dataclass
class Tree:
    """Files by path, with their bytes."""

    files: dict[str, int]
    asked: list[str] = field(default_factory=list)

    def list_children(self, folder: str) -> Iterator[Entry]:
        self.asked.append(folder)
        below = {path[len(folder) + 1 :]: size for path, size in self.files.items() if path.startswith(f"{folder}/")}
        if not below:
            raise FileNotFoundError(folder)
        for name in dict.fromkeys(path.partition("/")[0] for path in below):
            yield Entry(name, is_folder=name not in below, bytes=below.get(name, 0))
