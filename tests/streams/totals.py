"""Running totals: a graph whose state is global, so that no later graph can make it anew from a part of the rows.

::

    state of a user     open: sums of each window that is not closed
                        total: of all windows that are ── a row as each of them closes, with the total until then
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import Row as Made
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tests.streams.rows import Row, Sums, sum_windows

OUTPUT = (
    "window struct<start: timestamp, end: timestamp>, user string, rows bigint, clicks bigint, amount decimal(12,2)"
)
SUMS = "rows bigint, clicks bigint, amount decimal(12,2)"
LENGTH = 10
"""Of a window, in seconds."""


class Totals(StatefulProcessor):
    """Of one user.

    :param fields: of the total.
    """

    def __init__(self, fields: str) -> None:
        self.fields = fields

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.total = handle.getValueState("total", self.fields)
        self.open = handle.getMapState("open", "until bigint", SUMS)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        for row in rows:
            until = (int(row.ts.astimezone(UTC).timestamp()) // LENGTH + 1) * LENGTH
            self.add(until, Sums(1, row.clicks, row.amount))
        return iter(())

    def add(self, until: int, sums: Sums) -> None:
        before = self.open.getValue((until,))
        if before is None:
            self.handle.registerTimer(until * 1000)
        self.open.updateValue((until,), add_sums(before, sums))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        until = expiredTimerInfo.getExpiryTimeInMs() // 1000
        reached = add_sums(self.total.get(), Sums(*self.open.getValue((until,))))
        self.open.removeKey((until,))
        self.total.update(reached)
        start, end = (datetime.fromtimestamp(each, UTC) for each in (until - LENGTH, until))
        yield Made(window=Made(start=start, end=end), user=key[0], **reached._asdict())

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        if initialState["total"] is not None:
            self.total.update(tuple(initialState["total"].values()))
        for each in initialState["open"] or ():
            self.add(each["key"]["until"], Sums(*each["value"].values()))

    def close(self) -> None: ...


def make_totals(fields: str = SUMS) -> Callable[[Any], Any]:
    """The step of a graph with running totals."""

    def total_by_user(clicks: Any) -> Any:
        return clicks.groupBy("user").transformWithState(Totals(fields), OUTPUT, "Append", "EventTime")

    return total_by_user


def add_sums(before: Any, sums: Sums) -> Sums:
    """The sums of both; None: there were none."""
    rows, clicks, amount = before or (0, 0, Decimal(0))
    return Sums(rows + sums.rows, clicks + sums.clicks, amount + sums.amount)


def total_windows(rows: Iterable[Row], upto: float) -> dict[tuple[int, str], Sums]:
    """The batch computation: the total of each user at the end of each of the user's windows.

    :param upto: of windows that end no later than this, in seconds since 1970.
    """
    totals, found = dict[str, Sums](), dict[tuple[int, str], Sums]()
    for (end, user), sums in sorted(sum_windows(rows, LENGTH, upto=upto).items()):
        totals[user] = found[end, user] = add_sums(totals.get(user), sums)
    return found
