"""Calls of steps' functions, those before the step's own turn among them: what a dataset's readers will ask of it.

::

    s ──> b, c, d     turn of b: called ── its job is about to begin, and would keep s ── which columns do c, d use?
                      c, d: called now, each in a thread of its own ............ their plans are there
                      b: keeps what all three use, and runs its job
                      turns of c, d: their jobs

A function is called once, and only when all above its step has ended. What it executes itself waits for the step's
turn; who asked does not wait for that. Nothing here decides: it costs time at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_dagsched.spark.session.current import CURRENT

if TYPE_CHECKING:
    from airflow_dagsched.spark.steps.planned import Planned

PATIENCE_S = 10.0
"""So long one waits, at most, for the functions that are called."""


@dataclass
class StepCall:
    """How far the call of a step's function is."""

    step: str
    thread: threading.Thread | None = None
    """That calls it before its turn."""
    told: threading.Event = field(default_factory=threading.Event)
    """Set when nobody need wait for ``planned`` any longer."""
    admitted: threading.Event = field(default_factory=threading.Event)
    """Set when its jobs may run."""
    planned: tuple[Planned, ...] = ()
    """What it returned, when it is told; nothing where it failed, or is not called."""
    acts: bool = False
    """Whether it executes something itself: then it is not known what it will return."""
    turn: Any = None
    """Of its function's call; None where it was not called."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when its turn is over, and those that read its rows may be called."""

    @property
    def has_no_job(self) -> bool:
        """Whether its rows are made by others' jobs, all of them."""
        return bool(self.planned) and not any(each.is_executed for each in self.planned)

    def act(self) -> None:
        """Its function is about to execute something: blocks until it is the step's turn."""
        self.acts = True
        self.told.set()
        self.admitted.wait()

    def return_plans(self, planned: tuple[Planned, ...]) -> None:
        """Its function has returned."""
        self.planned, self.acts = planned, False
        self.told.set()


class StepCalls:
    """The calls of one application."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._calls: dict[str, StepCall] = {}

    def begin_turn(self, step: str) -> StepCall:
        """The step's own turn has come: its call, which has returned if it was made before."""
        with self._guard:
            call = self._calls.setdefault(step, StepCall(step))
        call.admitted.set()
        if call.thread is not None:
            call.thread.join()
        return call

    def find(self, step: str) -> StepCall | None:
        """The step's call, if it was made, or is about to be."""
        return self._calls.get(step)

    def release(self, step: str) -> None:
        """Nobody reads the step's rows any more: let go of what its function returned."""
        call = self._calls.get(step)
        if call is not None:
            call.turn, call.planned = None, ()

    def call_early(self, step: str, call_function: Callable[[StepCall], None]) -> StepCall:
        """Have the step's function called by a thread of its own, unless somebody has."""
        with self._guard:
            call = self._calls.get(step)
            if call is None:
                call = self._calls[step] = StepCall(step)
                # A daemon: it may wait for a turn that never comes, where the whole group has ended.
                call.thread = threading.Thread(
                    target=call_function, args=(call,), name=f"dagsched-ahead-{step}", daemon=True
                )
                call.thread.start()
        return call


def wait_for_plans(call: StepCall, until_s: float) -> tuple[Planned, ...] | None:
    """What the step's function returned; None if that is not known by ``until_s`` of the monotonic clock."""
    call.told.wait(max(0.0, until_s - time.monotonic()))
    if not call.told.is_set() or call.acts:
        return None
    # Those that read its rows are asked next, and can be called when its turn is over: a moment after it has returned.
    if call.has_no_job and CURRENT.step != call.step:
        call.over.wait(max(0.0, until_s - time.monotonic()))
    return call.planned
