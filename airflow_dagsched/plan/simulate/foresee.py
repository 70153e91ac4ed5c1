"""The order of launches that is foreseen to be best: each is played through with what is planned.

::

    waiting now ──┬─ as in force ──played through──> mean and worst completion ─┐
                  ├─ a rival     ──played through──> sooner on both            ─┼─> the best of these is in force
                  └─ a rival     ──played through──> sooner on one, later on the other: not taken

First come first served is in force at first. What replaces it is no worse on the mean nor on the worst, and what is in
force is played through again and again: works submitted at one moment end no later than first come first served, on the
mean and on the worst, if all goes as planned. All that is looked at is what launches know of themselves and can write
down where the others see it: each one finds the same.

Nobody starves. *Patience*: as long as all that is left of what has been submitted when a group comes would take one
after another. No order of these lets it wait longer; later ones might, again and again. While somebody is out of
patience only first come first served is eligible, and what overtakes the first in line does not delay it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from msgspec import Struct

MOST = 300
"""Jobs; among more, looking ahead at each event would take too long: the policy at first stays in force."""
OVERDUE = 0.05
"""What should have ended already is expected after this part more of its planned time."""
WORST_COUNTS = 3.0
"""How much more a percent less on the worst completion is worth than on the mean: runtimes differ from what is planned,
and one launch out of turn costs the worst more than the mean."""


class Forecast(Struct, frozen=True):
    """What comes of a policy from now on."""

    unfinished: int
    """Works of which something has no worker left that could hold it."""
    mean_s: float
    worst_s: float
    """Seconds from submission to end, over the works that end."""


def make_forecast(completions: Sequence[float | None]) -> Forecast:
    """Of the works submitted by now; None: unfinished."""
    ended = [seconds for seconds in completions if seconds is not None]
    return Forecast(len(completions) - len(ended), fmean(ended or [0.0]), max(ended, default=0.0))


def choose_best(forecasts: Sequence[Forecast], in_force: int) -> int:
    """The position of the one to follow: the best of those no worse than that in force in any respect.

    At a tie what is in force stays, then the first.
    """
    base = forecasts[in_force]
    # Never worse than what is in force on either count: only so does the guarantee of the mean and the worst hold.
    eligible = (at for at, one in enumerate(forecasts) if _is_no_worse(one, base))
    return min(eligible, key=lambda at: (*_score_forecast(forecasts[at], base), at != in_force, at))


def _is_no_worse(one: Forecast, base: Forecast) -> bool:
    return one.unfinished <= base.unfinished and one.mean_s <= base.mean_s and one.worst_s <= base.worst_s


def _score_forecast(one: Forecast, base: Forecast) -> tuple[int, float]:
    """Rounded: the same sums in another order are a tie."""
    return one.unfinished, round(one.mean_s / (base.mean_s or 1) + WORST_COUNTS * one.worst_s / (base.worst_s or 1), 9)
