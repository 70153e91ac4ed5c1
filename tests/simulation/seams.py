"""What the product takes from the machine beside files and clock, replaced while a history runs: ids and locks.

Spark is replaced too: a draft is written straight into the store. All else is the product's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any
from uuid import UUID

from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.launch.protocol.wire import parse_dataclass
from airflow_dagsched.spark.files import hadoop_store, store
from airflow_dagsched.spark.outputs import (
    commits,
    datasets,
    homes,
    leases,
    locks,
    path_tables,
    swap,
    table_checks,
    table_commit,
)
from tests.simulation.world import World

MODULES: tuple[ModuleType, ...] = (
    commits,
    datasets,
    hadoop_store,
    homes,
    leases,
    locks,
    path_tables,
    store,
    swap,
    table_checks,
    table_commit,
)


AS_THEY_ARE = nullcontext()
"""Errors of the simulated files are no Java exceptions."""


class TaskLock:
    """A ``threading.Lock`` between the tasks of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._held = False
        self._waiting: list[object] = []

    def __enter__(self) -> None:
        while self._held:
            self._world.block(self._waiting)
        self._held = True

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: TracebackType | None) -> None:
        self._held = False
        self._world.unblock(self._waiting)


@contextmanager
def simulated(world: World, write_draft: Callable[..., Any]) -> Iterator[None]:
    """Let the product's modules take locks and ids from ``world``, and drafts from ``write_draft``."""
    replaced = {
        "threading": SimpleNamespace(Lock=lambda: TaskLock(world)),
        "uuid": SimpleNamespace(uuid4=lambda: UUID(int=world.draw_bits(128))),
        # Pure, and asked the same again and again while somebody waits: half of all time.
        "join_path": cache(store.join_path),
        "parse_dataclass": cache(parse_dataclass),
        "escape_key": cache(escape_key),
        "_write_draft": write_draft,
        "_as_os_errors": lambda path: AS_THEY_ARE,
    }
    before = [(module, name, getattr(module, name)) for module in MODULES for name in replaced if hasattr(module, name)]
    # A name that nobody has any more would be replaced nowhere, without a word.
    assert {name for _, name, _ in before} == replaced.keys()
    for module, name, _ in before:
        setattr(module, name, replaced[name])
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
