"""Which step the calling thread works for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_dagsched.launch.protocol.manifest import Needed


class _Current(threading.local):
    step: str | None = None
    """The step whose turn it is in this thread; what is printed is its."""
    session: SparkSession | None = None
    """The step's own session."""
    on_action: Callable[[DataFrame | None], None] | None = None
    """Called before an action of the author's; None while our own code acts."""
    needed: Mapping[str, Needed] = {}
    """Table, by its place -> all that is read of it."""


CURRENT = _Current()


_AT_WORK: dict[int, str] = {}
"""Thread -> the step it works for."""


@contextmanager
def work_for(step: str, session: SparkSession | None = None) -> Iterator[None]:
    """This thread works for ``step`` while the block runs."""
    before = CURRENT.step, CURRENT.session
    CURRENT.step, CURRENT.session = step, session
    _AT_WORK[threading.get_ident()] = step
    try:
        yield
    finally:
        CURRENT.step, CURRENT.session = before
        if before[0] is None:
            del _AT_WORK[threading.get_ident()]
        else:
            _AT_WORK[threading.get_ident()] = before[0]


def list_threads_at_work() -> dict[str, int]:
    """Step -> the thread that works for it."""
    # A copy first: threads of other steps come and go meanwhile.
    return {step: thread for thread, step in tuple(_AT_WORK.items())}


@contextmanager
def watch_actions(on_action: Callable[[DataFrame | None], None]) -> Iterator[None]:
    """The author's code runs in this block: ``on_action`` hears of each action before it begins."""
    CURRENT.on_action = on_action
    try:
        yield
    finally:
        CURRENT.on_action = None


@contextmanager
def limit_reads(needed: Mapping[str, Needed]) -> Iterator[None]:
    """The author's code runs in this block: of the tables in ``needed`` it gets no more than that."""
    # Put back as it was: this thread goes on to other steps.
    before, CURRENT.needed = CURRENT.needed, needed
    try:
        yield
    finally:
        CURRENT.needed = before
