"""What of a feed is pushed: at most ``PUSH_BYTES``, however many steps there are and however much they say.

Every mirror reads all of every push, twice a second. How each step ended is never left out, only said in fewer words;
lines get the room that is left, those a mirror may not have seen yet first. The launch task's log has everything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from airflow_dagsched.launch.protocol.events import Failure, StepDone
from airflow_dagsched.launch.protocol.feed import Feed, StepLines, shorten
from airflow_dagsched.launch.protocol.wire import encode, fitting

PUSH_BYTES = 64 * 1024
WORDY_BYTES = 32 * 1024
"""What ends may take if they could be said in fewer words."""
STEP_BYTES = 8 * 1024
"""Of it for one step's lines, at most: a triggerer takes in some 100 kB of its triggers' logs a second, and what it has
not by the end of a trigger is lost to that trigger's log.
"""
FRESH_S = 5.0
"""So long a line is taken for one that a mirror may not have seen: ten looks."""
SHORTEST_LINE = 40
"""A line is not cut to fewer bytes."""


@dataclass(frozen=True, slots=True)
class Words:
    """How much is said of each end."""

    traceback: int
    """Characters, as the following."""
    text: int
    numbers: bool = True
    datasets: bool = True
    """Where its rows are. A later group that is not told looks it up among the commits."""


WORDS = (
    Words(6000, 1000),
    Words(2000, 500),
    Words(500, 200),
    Words(0, 100),
    Words(0, 40, numbers=False),
    Words(0, 0, numbers=False, datasets=False),
)
"""From many to few: the first are used that keep all ends within ``WORDY_BYTES``, else the last."""


def pushed(feed: Feed, now_s: float) -> dict[str, Any]:
    """``feed`` as JSON, at ``now_s`` of the clock by which its lines were added."""
    whole: dict[str, Any] = encode(replace(feed, steps={}, logs={}))
    whole["steps"] = _said(list(feed.steps.values()))
    room = PUSH_BYTES - size_of(whole)
    whole["logs"] = {step: _listed(lines) for step, lines in _fitting(feed, now_s, room).items()}
    return whole


def read_feed(raw: Any) -> Feed | None:
    """The feed that :func:`pushed` made ``raw`` of; None where it is none, as what another version says."""
    steps = raw.get("steps", {}) if isinstance(raw, Mapping) else None
    if not isinstance(steps, Mapping) or not all(isinstance(done, Mapping) for done in steps.values()):
        return None
    return fitting(Feed, {**raw, "steps": {step: {**done, "step": step} for step, done in steps.items()}})


def size_of(value: Any) -> int:
    """Bytes of ``value`` as JSON where every character beyond ASCII is escaped, its separator included."""
    return len(json.dumps(value)) + 2


def _said(ends: list[StepDone]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for words in WORDS:
        said = {done.step: _compact(_in(words, done)) for done in ends}
        if size_of(said) <= WORDY_BYTES:
            break
    return said


def _in(words: Words, done: StepDone) -> StepDone:
    """What a mirror, or a later group's launch, needs of ``done``. The value is in the mirror's own XCom."""
    failure = done.failure and Failure(
        done.failure.kind,
        shorten(done.failure.message, words.text),
        shorten(done.failure.traceback, words.traceback),
    )
    said = StepDone(done.step, done.state, failure=failure, reason=shorten(done.reason, words.text))
    if words.numbers:
        said = replace(said, rows=done.rows, bytes=done.bytes, seconds=done.seconds)
    return replace(said, datasets=done.datasets) if words.datasets else said


def _compact(done: StepDone) -> dict[str, Any]:
    """As JSON, without its name and what has its default."""
    usual = {each.name: each.default for each in fields(done)}
    raw = encode(replace(done, step=""))
    return {name: value for name, value in raw.items() if value == 0 or (value and value != usual.get(name))}


def _listed(lines: StepLines) -> dict[str, Any]:
    return {"first": lines.first, "lines": list(lines.lines)}


def _fitting(feed: Feed, now_s: float, room: int) -> dict[str, StepLines]:
    """Last lines of steps: equal room for all that said something just now, then for others, the latest first."""
    latest = sorted(feed.logs, key=lambda step: -feed.logs[step].added_s)
    fresh = [step for step in latest if now_s - feed.logs[step].added_s <= FRESH_S]
    fitting: dict[str, StepLines] = {}
    for step, share in fair({step: min(STEP_BYTES, _wanted(step, feed.logs[step])) for step in fresh}, room).items():
        if share < _overhead(step):
            continue
        fitting[step] = _last(feed.logs[step], share - _overhead(step))
        room -= _wanted(step, fitting[step])
    for step in latest[len(fresh) :]:
        share = min(STEP_BYTES, room) - _overhead(step)
        if share <= SHORTEST_LINE:
            break
        fitting[step] = _last(feed.logs[step], share)
        room -= _wanted(step, fitting[step])
    return fitting


def fair(wanted: Mapping[str, int], room: int) -> dict[str, int]:
    """Shares of ``room``: what each wants, but none more than an equal share of what the modest leave over."""
    shares: dict[str, int] = {}
    for at, step in enumerate(sorted(wanted, key=lambda step: wanted[step])):
        shares[step] = max(0, min(wanted[step], room // (len(wanted) - at)))
        room -= shares[step]
    return shares


def _wanted(step: str, lines: StepLines) -> int:
    return _overhead(step) + sum(map(size_of, lines.lines))


def _overhead(step: str) -> int:
    return size_of(step) + size_of({"first": 10**9, "lines": []})


def _last(lines: StepLines, room: int) -> StepLines:
    """The last lines that fit; of the very last as much as does."""
    kept: list[str] = []
    for line in reversed(lines.lines):
        if size_of(line) > room:
            break
        room -= size_of(line)
        kept.append(line)
    if not kept and lines.lines and room >= SHORTEST_LINE:
        kept = [_cut(lines.lines[-1], room)]
    return StepLines(lines.first + len(lines.lines) - len(kept), tuple(reversed(kept)))


def _cut(line: str, room: int) -> str:
    chars = len(line)
    while chars and size_of(shorten(line, chars)) > room:
        chars = chars * 3 // 4
    return shorten(line, chars)
