"""A home folder nobody else uses: two demos side by side get two."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path


@contextmanager
def fresh_home(parent: Path) -> Iterator[Path]:
    """An empty folder under ``parent``, ours until the block ends; what is in it stays until the next use."""
    parent.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        home = parent / f"airflow-{number}"
        with home.with_suffix(".lock").open("w") as lock:
            if not _acquire(lock.fileno()):
                continue
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            yield home
            return


def _acquire(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
