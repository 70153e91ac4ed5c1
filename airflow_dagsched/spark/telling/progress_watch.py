"""Watches whether the steps at work get anywhere, and says in a step's own log what it waits for if it doesn't."""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import py4j  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.events import Event, Stalled
from airflow_dagsched.launch.steps.progress import Progress, Seen, Stage, explain_wait, list_others_at_work
from airflow_dagsched.spark.files.clock import MACHINE
from airflow_dagsched.spark.java_objects import iterate_items
from airflow_dagsched.spark.session.current import list_threads_at_work

LOOK_S = 5.0
MOST_TASKS = 200
"""Of a stage are looked at for the hosts they run on."""
OURS = str(Path(__file__).parents[2]) + os.sep
PY4J = str(Path(py4j.__file__).parent) + os.sep
LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
ROWS = ("inputRecords", "outputRecords", "shuffleReadRecords", "shuffleWriteRecords")


class ProgressWatch:
    """Looks at the steps at work.

    :param steps: whose progress is told; others are another group's.
    :param stall_s: seconds without progress until it is said; 0: never.
    :param printed: lines a step has printed.
    """

    def __init__(
        self,
        spark: SparkSession,
        steps: tuple[str, ...],
        stall_s: float,
        emit: Callable[..., None],
        printed: Callable[[str], int] = lambda step: 0,
        executors: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._jobs = Jobs(spark)
        self._steps = frozenset(steps)
        self._stall_s = stall_s
        self._emit = emit
        self._printed = printed
        self._executors = executors
        self._known: Mapping[str, tuple[Progress, Seen]] = {}

    @contextmanager
    def watch_steps(self) -> Iterator[None]:
        """Look every few seconds while the block runs."""

        def look() -> None:
            with suppress(Exception):  # Spark is stopping, or is one that says less of itself
                self.look_at_steps(time.monotonic())

        # A quarter of the limit: so much too late a stall is said at most.
        end = MACHINE.every(min(LOOK_S, self._stall_s / 4) if self._stall_s else LOOK_S, look, "dagsched-progress")
        try:
            yield
        finally:
            end()

    def look_at_steps(self, now_s: float) -> None:
        """Look at each step at work once, at ``now_s`` of the monotonic clock."""
        known, before = {}, self._known
        for step, seen in self._see_steps().items():
            last = before[step][0] if step in before else Progress(seen.mark, now_s)
            progress = last.after(seen, now_s)
            if progress.is_due(self._stall_s, now_s):
                self._emit(Stalled(step, now_s - progress.moved_s, explain_wait(self._jobs.add_hosts(seen))))
                progress = replace(progress, said=progress.said + 1)
            elif last.said and not progress.said:
                self._emit(Stalled(step, 0.0, f"progress again, after {now_s - last.moved_s:.0f} s"))
            known[step] = progress, seen
        # Whole, in one assignment: the signal handler reads it, at any moment.
        self._known = known

    def list_stalled(self, now_s: float) -> tuple[Event, ...]:
        """What each step waits for as this driver is told to end, from the last look: Spark may not answer any more."""
        ours = {step: thread for step, thread in list_threads_at_work().items() if step in self._known}
        return tuple(
            Stalled(step, now_s - progress.moved_s, explain_wait(self._add_standing(seen, ours[step])))
            for step, (progress, seen) in self._known.items()
            if step in ours
        )

    def _see_steps(self) -> dict[str, Seen]:
        threads = {step: thread for step, thread in list_threads_at_work().items() if step in self._steps}
        stages = self._jobs.list_stages() if threads else ()
        found = {}
        for step, thread in threads.items():
            own = tuple(stage for stage in stages if stage.step == step)
            seen = Seen(
                stages=own,
                others=list_others_at_work(stages, step),
                # A step without stages may still begin jobs that end between two looks.
                jobs=0 if own else self._jobs.count_begun(),
                printed=self._printed(step),
                executors=self._executors(),
            )
            found[step] = self._add_standing(seen, thread)
        return found

    def _add_standing(self, seen: Seen, thread: int) -> Seen:
        # CPython's own table of where each thread is; none of them stops for it.
        place, in_spark = find_standing(sys._current_frames().get(thread))
        return replace(seen, place=place, in_spark=in_spark)


class Jobs:
    """What Spark knows of its jobs, also without its pages."""

    def __init__(self, spark: SparkSession) -> None:
        self._store: Any = spark.sparkContext._jsc.sc().statusStore()

    def list_stages(self) -> tuple[Stage, ...]:
        """Those at work. A step's jobs run in the pool of its name."""
        return tuple(_make_stage(each) for each in iterate_items(self._store.activeStages()))

    def count_begun(self) -> int:
        """Number of the last job."""
        # Null is "of any state" to Spark; the newest job comes first.
        return max((int(each.jobId()) for each in islice(iterate_items(self._store.jobsList(None)), 1)), default=-1) + 1

    def add_hosts(self, seen: Seen) -> Seen:
        """``seen`` with the hosts its tasks run on."""
        return replace(seen, stages=tuple(replace(each, hosts=self._find_hosts(each)) for each in seen.stages))

    def _find_hosts(self, stage: Stage) -> tuple[str, ...]:
        with suppress(Exception):  # it has ended in between
            tasks = iterate_items(self._store.taskList(stage.number, stage.attempt, MOST_TASKS))
            return tuple(sorted({str(task.host()) for task in tasks if str(task.status()) == "RUNNING"}))
        return ()


def _make_stage(raw: Any) -> Stage:
    return Stage(
        number=int(raw.stageId()),
        attempt=int(raw.attemptId()),
        name=str(raw.name()),
        step=str(raw.schedulingPool()),
        tasks=int(raw.numTasks()),
        running=int(raw.numActiveTasks()),
        ended=int(raw.numCompleteTasks()),
        rows=sum(int(getattr(raw, name)()) for name in ROWS),
    )


def find_standing(frame: FrameType | None) -> tuple[str, bool]:
    """Where a thread stands in the author's code, else in ours; and whether it waits for Spark's answer."""
    author, own, in_spark = "", "", False
    while frame is not None and not author:
        file = frame.f_code.co_filename
        in_spark = in_spark or file.startswith(PY4J)
        here = f"{Path(file).name}:{frame.f_lineno} ({frame.f_code.co_name})"
        if file.startswith(OURS):
            own = own or here
        # "<frozen importlib>" and the like are no files.
        elif not file.startswith(LIBRARIES) and not file.startswith("<"):
            author = here
        frame = frame.f_back
    return author or own, in_spark
