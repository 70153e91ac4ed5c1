"""Whether a running step gets anywhere; and if not, what it waits for. Pure: what was seen goes in, words come out.

::

    moved ──5 min──> said ──5 min──> said ──10 min──> said ──20 min──> ...
      ^ a task ended, a row was read or written, a job or stage began, a line was printed outside of any stage
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_CALLED_AT = re.compile(r" at (?:NativeMethodAccessorImpl\.java:\d+$|.*/)")
"""What says nothing in a stage's name: the JVM's own place, the folders of the author's."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A Spark stage at work."""

    number: int
    attempt: int
    name: str
    """``collect at /dags/etl.py:31``."""
    step: str
    tasks: int
    running: int = 0
    ended: int = 0
    rows: int = 0
    """Read and written."""
    hosts: tuple[str, ...] = ()
    """Where its tasks run."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a step."""

    stages: tuple[Stage, ...] = ()
    """Its own."""
    others: tuple[str, ...] = ()
    """Other steps whose tasks run."""
    jobs: int = 0
    """Jobs the application began until now; counted where the step has no stage."""
    printed: int = 0
    """Lines."""
    place: str = ""
    """Where its Python code stands: ``etl.py:40 (clean)``."""
    in_spark: bool = False
    """Whether that code waits for an answer of Spark's."""
    executors: int | None = None
    """None: it needs none, or they can't be counted."""

    @property
    def mark(self) -> tuple[object, ...]:
        """Changes when anything moves."""
        if self.stages:
            return tuple((each.number, each.attempt, each.ended, each.rows) for each in self.stages)
        return self.jobs, self.printed


@dataclass(frozen=True, slots=True)
class Progress:
    """Of one step."""

    mark: tuple[object, ...]
    moved_s: float
    """When anything last moved, in seconds of some clock."""
    said: int = 0
    """How often it was said since then that nothing moves."""

    def after(self, seen: Seen, now_s: float) -> Progress:
        """With one more look."""
        # Whatever moved: how often it was said begins anew, and so does the time between two.
        return self if seen.mark == self.mark else Progress(seen.mark, now_s)

    def is_due(self, stall_s: float, now_s: float) -> bool:
        """Whether it is time to say so (again): after ``stall_s``, then after twice as long each time."""
        return stall_s > 0 and now_s - self.moved_s >= stall_s * 2**self.said


def explain_wait(seen: Seen) -> str:
    """What a step waits for."""
    at_work = [_describe_tasks(stage) for stage in seen.stages if stage.running]
    called = f", called at {seen.place}" if seen.place else ""
    if at_work:
        return "; ".join(at_work) + called
    if seen.stages:
        return f"{_describe_wait(seen)}{called}"
    if seen.in_spark:
        return f"runs no Spark stage: Spark plans, lists files or commits{called}"
    return f"runs no Spark job: in Python at {seen.place or 'an unknown place'}"


def _describe_tasks(stage: Stage) -> str:
    tasks = "1 task" if stage.running == 1 else f"{stage.running} tasks"
    hosts = f" on {', '.join(stage.hosts)}" if stage.hosts else ""
    ended = f"{stage.ended} of {stage.tasks} ended" if stage.ended else f"none of {stage.tasks} ended"
    return f"{_name_stage(stage)} runs {tasks}{hosts}, {ended}"


def _describe_wait(seen: Seen) -> str:
    stages = ", ".join(map(_name_stage, seen.stages))
    if seen.executors == 0:
        return f"{stages} waits for executors: none is there"
    busy = f", which tasks of {', '.join(map(repr, seen.others))} have" if seen.others else ""
    return f"{stages} waits for free cores{busy}"


def _name_stage(stage: Stage) -> str:
    name = _CALLED_AT.sub(lambda match: " at " if match[0].endswith("/") else "", stage.name)
    return f"stage {stage.number} ({name})"


def list_others_at_work(stages: Sequence[Stage], step: str) -> tuple[str, ...]:
    """Steps other than ``step`` whose tasks run."""
    return tuple(sorted({stage.step for stage in stages if stage.running and stage.step != step}))
