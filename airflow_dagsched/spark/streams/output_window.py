"""The column that tells of which of the flow's windows a row is. Pure: plans are judged to find it, sinks read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from airflow_dagsched.spark.session.observed import quote_name
from airflow_dagsched.switch.windows import find_end, round_up

Part = Literal["time", "window", "start", "end"]
"""What the column has: a row's event time; a window of the author's; when such a one starts; when it ends."""
Comparison = Literal[">", ">=", "<", "<="]


@dataclass(frozen=True, slots=True)
class OutputWindow:
    """A column of the rows that a query writes. Moments are in seconds since 1970.

    The author's windows are no longer than the flow's, or slide: a row is of the flow's window in which its own ends.
    """

    column: str
    part: Part
    length_s: float = 0.0
    """Of the author's window; 0 where the column has an event time, or has the window's end itself."""

    @property
    def path(self) -> str:
        """The moment in a row, as Spark SQL writes it."""
        name = quote_name(self.column)
        return f"{name}.`end`" if self.part == "window" else name

    def find_flow_window(self, moment: float, window_s: float) -> float:
        """The end of the flow's window, of ``window_s`` seconds, of a row with this moment."""
        if self.part == "time":
            return find_end(moment, window_s)
        return round_up(moment + self.shift_s, window_s)

    def bound(self, after: float | None, upto: float | None) -> tuple[tuple[Comparison, float], ...]:
        """What the moment has to be like for the flow's windows ``(after, upto]``, which are ends; None: no such limit.

        :returns: comparisons, all of which have to hold.
        """
        later, not_later = self._comparisons
        found: list[tuple[Comparison, float]] = []
        if after is not None:
            found.append((later, after - self.shift_s))
        if upto is not None:
            found.append((not_later, upto - self.shift_s))
        return tuple(found)

    @property
    def shift_s(self) -> float:
        """By how much the window's end is later than the moment, in seconds."""
        return self.length_s if self.part == "start" else 0.0

    @property
    def _comparisons(self) -> tuple[Comparison, Comparison]:
        # An event time exactly on an end is of the next window, an end on it of this one.
        return (">=", "<") if self.part == "time" else (">", "<=")
