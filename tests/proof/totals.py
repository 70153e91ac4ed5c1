"""Running totals of each user, in state that a later graph can only be given: it is of rows that it never reads.

::

    state of a user     total of all windows that have ended        open: sums of each window that has not
                                └── a row when a window ends: the total with it

What a graph makes of a window it does as that ends. So the definition of the epoch that owns a window is the one that
its rows are summed by, whichever graph has read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.streams.rows import Sums

OUTPUT = (
    "window struct<start: timestamp, end: timestamp>, user string, rows bigint, clicks bigint, amount decimal(22,2)"
)
SUMS = "rows bigint, clicks bigint, amount decimal(22,2)"
CARRIES = "total", "open"


def make_totals(factor: int = 1, without: str = "") -> Callable[[Any], Any]:  # noqa: C901 - a processor travels whole
    """A step with the totals.

    :param factor: by which clicks are multiplied.
    :param without: user who gets none.
    """

    def total_by_user(clicks: Any) -> Any:  # noqa: C901
        from datetime import UTC, datetime

        import pandas as pd
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor

        def add(one: Any, other: Any) -> Any:
            return tuple(a + b for a, b in zip(one, other, strict=True)) if one else tuple(other)

        class Totals(StatefulProcessor):
            def init(self, handle: Any) -> None:
                self.handle = handle
                self.total = handle.getValueState("total", SUMS)
                self.open = handle.getMapState("open", "until bigint", SUMS)

            def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
                for frame in rows:
                    until = (frame["ts"].astype("datetime64[s]").astype("int64") // 10 + 1) * 10
                    for end, part in frame.groupby(until):
                        self.add_open(int(end), (len(part), int(part["clicks"].sum()), sum(part["amount"])))
                return iter(())

            def add_open(self, until: int, sums: Any) -> None:
                if not self.open.containsKey((until,)):
                    self.handle.registerTimer(until * 1000)
                self.open.updateValue((until,), add(self.open.getValue((until,)), sums))

            def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:  # noqa: N802, N803
                until = expiredTimerInfo.getExpiryTimeInMs() // 1000
                rows, value, amount = self.open.getValue((until,))
                self.open.removeKey((until,))
                if key[0] != without:
                    reached = add(self.total.get(), (rows, value * factor, amount))
                    self.total.update(reached)
                    window = dict(zip(("start", "end"), map(tell_time, (until - 10, until)), strict=True))
                    columns = dict(zip(("rows", "clicks", "amount"), reached, strict=True))
                    yield pd.DataFrame([{"window": window, "user": key[0], **columns}])

            def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
                [carried] = initialState.to_dict("records")
                if carried["total"] is not None:
                    self.total.update(list_sums(carried["total"]))
                for each in () if carried["open"] is None else carried["open"]:
                    self.add_open(each["key"]["until"], list_sums(each["value"]))

            def close(self) -> None: ...

        def list_sums(carried: Any) -> Any:
            return tuple(carried[name] for name in ("rows", "clicks", "amount"))

        def tell_time(moment: int) -> Any:
            return datetime.fromtimestamp(moment, UTC)

        return clicks.groupBy("user").transformWithStateInPandas(Totals(), OUTPUT, "Append", "EventTime")

    return total_by_user


def add_up(sums: Mapping[tuple[int, str], Sums]) -> dict[tuple[int, str], Sums]:
    """The totals of each user at the end of each window.

    :param sums: of single windows, each by the definition of the epoch that owns it.
    """
    totals, found = dict[str, Sums](), dict[tuple[int, str], Sums]()
    for end, user in sorted(sums):
        before, added = totals.get(user, Sums(0, 0, 0)), sums[end, user]
        totals[user] = found[end, user] = Sums(*(a + b for a, b in zip(before, added, strict=True)))
    return found
