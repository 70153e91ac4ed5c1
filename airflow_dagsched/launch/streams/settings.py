"""What an author says of a whole streaming flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Channel = Literal["replay", "inbox", "carry"]
"""How rows come to the successor: it reads the source again; one inbox for each epoch; the owner's state is its own."""
Confirm = Literal["auto", "manual"]
"""Who says that a graph that has caught up takes over."""
Overlap = Literal["beside", "sequential"]
"""Whether both graphs run for a while, or there is room for one alone."""
Order = Literal["any", "window"]
"""Whether a later window may be in the table before all earlier ones are."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Of one flow. Times are in seconds."""

    window_s: float
    """Length of the flow's windows: a switch happens at the end of one. They begin at 1970-01-01T00:00Z."""
    lateness_s: float
    """By how much a row may come after rows of later event time, and still be counted."""
    trigger_s: float
    """Between the starts of two batches."""
    max_ahead_s: float = 86_400.0
    """Rows of an event time further ahead of the clock are left out, and counted."""
    reach_s: float = 0.0
    """By how much windows may begin before the flow's window that they end in: of sliding ones, length less slide. A
    graph that takes over begins so much earlier.
    """
    channel: Channel = "replay"
    overlap: Overlap = "beside"
    order: Order = "any"
    confirm: Confirm = "auto"
    hold_slot: bool = False
    """The driver ends with the launch task: for hosts that let nothing outlive it."""
    standbys: int = 0
    deploy_within_s: float = 900.0
    """A graph that is to take over is given up if its queries do not run by then."""
    stuck_within_s: float = 1800.0
    """It is given up, too, if it has no batch for so long."""
    catch_up_within_s: float = 21_600.0
    """It is given up, too, if it has had batches for so long, one a trigger, and is behind the old graph."""
    ends_within_s: float | None = None
    """A batch that runs when the graph is to end is run again by the next driver if it takes longer; None: three times
    as long as the one before it took, a minute at least.
    """

    @property
    def most_stuck_s(self) -> float:
        """Seconds without a batch after which a graph that is to take over is given up."""
        # A batch may well take as long as from one trigger to the next, and the first begins behind what is missed.
        return max(self.stuck_within_s, 3 * self.trigger_s)

    def choose_end_s(self, batch_s: float | None) -> float:
        """Seconds for which the batch that runs as a graph is to end may go on.

        :param batch_s: that the one before it took; None: there was none.
        """
        return max(60.0, 3 * (batch_s or 0.0)) if self.ends_within_s is None else self.ends_within_s
