"""Why a plan is refused: a code, and what it is about, and the sentence of each with the way out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Code = Literal[
    "keys without window",
    "window of another time",
    "session window",
    "duplicates for ever",
    "duplicates within watermark",
    "join without window",
    "state of its own",
    "state that cannot be read",
    "groups of a batch",
    "limit",
    "order",
    "unknown operator",
    "watermark of its own",
    "stream of its own",
    "window starts late",
    "window does not divide",
    "slide does not divide",
    "rows without window",
    "reaches back",
]

_CARRY = "or write it with transformWithState and declare carries="
SENTENCES: Mapping[Code, str] = {
    "keys without window": "groups by {column} without a window of the event time, so its groups never end: "
    "add F.window({time!r}, '{window}') to the keys, " + _CARRY,
    "window of another time": "groups by windows of {column}, which is not the event time, so they never end: "
    "make them of {time!r}, or make that column the source's event_time",
    "session window": "sessions are no windows of the flow's, one may last for ever: "
    "group by F.window({time!r}, '{window}') instead, " + _CARRY,
    "duplicates for ever": "looks for duplicates by {column}, and remembers every row for ever: "
    "add {time!r} or a window of it to the columns, " + _CARRY,
    "duplicates within watermark": "dropDuplicatesWithinWatermark remembers across windows: "
    "use dropDuplicates with {time!r} or a window of it among the columns, " + _CARRY,
    "join without window": "joins two streams on {column}, and remembers the rows of both for ever: "
    "join on equal windows or equal event times, too",
    "state of its own": "{operator} keeps what it likes: declare carries= with the names of its states",
    "state that cannot be read": "{operator} has a state that no successor can take over: "
    "write it with transformWithState and declare carries=",
    "groups of a batch": "{operator} sees a group's rows of one batch alone, so it depends on how batches fall: "
    "aggregate by F.window({time!r}, '{window}'), " + _CARRY,
    "limit": "takes so many rows of a stream, which rows depends on how batches fall: "
    "leave it out, or take them in a dataflow that reads the table",
    "order": "orders the rows of a stream, which never ends: "
    "leave it out, or order them in a dataflow that reads the table",
    "unknown operator": "nobody knows what {operator} keeps of a stream: "
    "write it with other functions, or in a dataflow that reads the table",
    "watermark of its own": "has a watermark of its own on {column}: "
    "leave withWatermark out, the flow puts one on each source by event_time= and lateness=",
    "stream of its own": "reads a stream that the flow does not know: declare it with @task.spark_stream_source",
    "window starts late": "windows of {length} of {column} start {start} after the flow's: leave startTime out",
    "window does not divide": "windows of {length} of {column} do not divide the flow's of {window}: "
    "make the flow's window= a multiple of them",
    "slide does not divide": "windows of {length} of {column} slide by {slide}, which has to divide both their length "
    "and the flow's window of {window}: change the slide, or the flow's window=",
    "rows without window": "writes rows that have neither a window nor the event time (of {column}): "
    "keep the window or the event time among them, as it is or renamed",
    "reaches back": "its windows begin up to {length} before the flow's that they end in, which may be {start}: "
    "write reach='{length}' beside the flow's window=, and a changed graph begins so much earlier",
}
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that is wrong. Which fields there are depends on the code; lengths are in seconds."""

    code: Code
    step: str = ""
    columns: tuple[str, ...] = ()
    time: str = ""
    """The column with the event time, where it is; empty: it is lost further down."""
    operator: str = ""
    length_s: float = 0.0
    slide_s: float = 0.0
    start_s: float = 0.0
    window_s: float = 0.0
    """Of the flow."""


def tell_refusal(refusal: Refusal) -> str:
    """One line: the step, what is wrong, and the way out."""
    sentence = SENTENCES[refusal.code].format(
        column=", ".join(map(repr, refusal.columns)) or "no column",
        time=refusal.time or "the event time",
        operator=refusal.operator,
        length=tell_length(refusal.length_s),
        slide=tell_length(refusal.slide_s),
        start=tell_length(refusal.start_s),
        window=tell_length(refusal.window_s),
    )
    return f"step {refusal.step!r}: {sentence}"


def tell_length(seconds: float) -> str:
    """A length of time as authors write it, in the largest unit that needs no fraction."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size and seconds % size == 0), _UNITS[-1])
    count = seconds / size
    return f"{count:g} {unit}" + ("" if count == 1 else "s")
