"""``airflow dagsched clean`` in a simulated store, and a person who damages files."""

from __future__ import annotations

from random import Random
from typing import Any

from airflow_dagsched.launch.retention.expiry import find_expired, remove_expired
from airflow_dagsched.launch.retention.inventory import Listed
from tests.simulation.scenario import RETENTION_S
from tests.simulation.tree import File, Tree
from tests.simulation.world import Process

WORK_DIRS = ("/work0", "/work1")


class Cleaned:
    """A store as ``clean`` looks at it."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.read_text = store.read_text
        self.exists = store.exists
        self.delete = store.delete
        self.delete_empty = store.delete_empty

    def list(self, path: str) -> tuple[Listed, ...]:
        entries = self._store.list(path)
        return tuple(Listed(each.name, each.is_folder, each.modified_ns / 1e9) for each in entries)


def clean(store: Any, process: Process) -> None:
    """What the command does, for all work dirs."""
    files = Cleaned(store)
    for work_dir in WORK_DIRS:
        remove_expired(find_expired(work_dir, process.now(), RETENTION_S, files).paths, files)


def damage(tree: Tree, rng: Random) -> str:
    """Empty or spoil a record or lease, or remove all records of the table; what was done."""
    files = [(path, file) for path, file in tree.files() if path.endswith(".json") and "/tables/" not in path]
    home = "/data/.dagsched-clean/commits"
    if rng.random() < 0.3 and tree.find(home) is not None:
        tree.take(home)
        return f"removes {home}"
    if not files:
        return "finds nothing to damage"
    path, file = rng.choice(files)
    assert isinstance(file, File)
    file.text = rng.choice(("", "null", "[]", '{"expires": null}', file.text[: len(file.text) // 2]))
    return f"spoils {path}"
