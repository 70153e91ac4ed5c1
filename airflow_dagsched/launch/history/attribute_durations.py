"""How long a step's turn would have taken alone, from turns that shared the cores of one application.

    2 cores      a ▐████████████▌            a and b want one core each: for each there is one
                 b ▐████████▌                c wants both: three are wanted of two, so that each turn
                 c     ▐████████▌            gets on at two thirds of its speed

Processor sharing: cores are shared out equally among all that want some. What is predicted from these
seconds by steps that hold their cores for themselves takes as long as what was measured, on few cores or many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from airflow_dagsched.launch.protocol.events import StepDone


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


def compute_alone_s(found: Sequence[Turn], cores: int) -> dict[str, float]:
    """Seconds each turn would have taken if nobody else had wanted the ``cores`` of the application."""
    change = _sum_changes(found)
    done, wanted, before = 0.0, 0, 0.0
    reached: dict[float, float] = {}
    for now in sorted(change):
        # ``done`` is the virtual time of processor sharing: it stands still while nobody wants a core, and never runs
        # faster than the clock. A turn alone takes as long as that time moves on between its begin and its end.
        done += (now - before) * min(1.0, cores / wanted) if wanted else 0.0
        reached[now] = done
        wanted, before = wanted + change[now], now
    return {turn.step: reached[turn.end_s] - reached[turn.begin_s] for turn in found}


def _sum_changes(found: Iterable[Turn]) -> dict[float, int]:
    """By how much the wanted cores change at each moment."""
    change: dict[float, int] = {}
    for turn in found:
        change[turn.begin_s] = change.get(turn.begin_s, 0) + turn.cores
        change[turn.end_s] = change.get(turn.end_s, 0) - turn.cores
    return change
