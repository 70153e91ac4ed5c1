"""How long an instance of each step takes, from turns that shared the cores of one application.

    2 cores      a ▐████▌▐████▌▐████▌        a: 3 instances, c: one. c begins with the core that is left when the last
                 a ▐████▌▐█ c ██████▌        two of a are started, or as the first of a ends: so an instance of a takes
                                             a third of a's turn in the one case, half of it in the other

The driver program lets a step begin when those that run have their cores and one is left; an instance keeps its core
until it ends. So the turns are played again in the order in which they began: the instances of each take, wave by wave,
what those before it leave, and last as long as it takes for the turn to end when it did. What is predicted from these
seconds, by the same rule, takes as long as what was measured, on few cores or many.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from airflow_dagsched.launch.protocol.events import StepDone

MOST_WAVES = 16
"""Of more, what the last one leaves idle hardly counts: the instances are taken together."""
HALVINGS = 30
"""So many times closer than the turn is long: to a billionth."""


class Turn(Struct, frozen=True):
    """Seconds from any moment on; the cores that the step's instances want together."""

    step: str
    begin_s: float
    end_s: float
    cores: int


def list_turns(ends: Sequence[StepDone], begun: Mapping[str, float], cores: Mapping[str, int]) -> tuple[Turn, ...]:
    """The turns in which something was executed. ``ends`` are in topological order.

    A step whose rows were made by the job of a reader had no time of its own: the turn that ran the job is
    that of the last step it executed.
    """
    place = {done.step: at for at, done in enumerate(ends)}
    return tuple(
        Turn(done.step, begun[done.step], begun[done.step] + done.seconds, cores.get(done.step, 1))
        for done in ends
        if done.seconds is not None and done.step in begun and _has_run_job(done, place)
    )


def _has_run_job(done: StepDone, place: Mapping[str, int]) -> bool:
    # One job makes the rows of all that are fused; it is run by the last of them, which needs the others' rows.
    return all(place.get(other, -1) < place[done.step] for other in done.fused)


def compute_alone_s(found: Iterable[Turn], cores: int) -> dict[str, float]:
    """Step -> seconds of one of its instances, in an application of so many ``cores``."""
    alone: dict[str, float] = {}
    busy: list[_Held] = []
    for turn in sorted(found, key=lambda turn: turn.begin_s):
        # Those before it come first: whoever begins later takes nothing from them.
        busy = [held for held in busy if held.end_s > turn.begin_s]
        count = min(turn.cores, MOST_WAVES * cores)
        seconds = _fit_seconds(turn, count, cores, busy)
        busy += _place_instances(turn.begin_s, count, seconds, cores, busy)
        alone[turn.step] = seconds * count / turn.cores
    return alone


class _Held(NamedTuple):
    """Cores that instances of one turn hold."""

    begin_s: float
    end_s: float
    cores: int


def _fit_seconds(turn: Turn, count: int, cores: int, busy: Sequence[_Held]) -> float:
    """Seconds of each of ``count`` instances with which the turn ends when it did."""

    def ends_late(seconds: float) -> bool:
        placed = _place_instances(turn.begin_s, count, seconds, cores, busy)
        return max(held.end_s for held in placed) > turn.end_s

    least, most = 0.0, turn.end_s - turn.begin_s
    # One wave: as nearly always.
    if not ends_late(most):
        return most
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        least, most = (least, middle) if ends_late(middle) else (middle, most)
    return least


def _place_instances(begin_s: float, count: int, seconds: float, cores: int, busy: Sequence[_Held]) -> list[_Held]:
    """The instances of a turn, each as soon as it finds a core."""
    placed: list[_Held] = []
    moments = [begin_s, *sorted(held.end_s for held in busy if held.end_s > begin_s)]
    while count:
        now = heapq.heappop(moments)
        free = cores - sum(held.cores for held in (*busy, *placed) if held.begin_s <= now < held.end_s)
        # It has begun: whatever is thought of the others, it has got on since.
        started = min(count, max(free, 0 if placed else 1))
        if started > 0:
            placed.append(_Held(now, now + seconds, started))
            heapq.heappush(moments, now + seconds)
            count -= started
    return placed
