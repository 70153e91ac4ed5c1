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
from airflow_dagsched.launch.protocol.feed import Feed, StepLines, shorten_text
from airflow_dagsched.launch.protocol.wire import encode_plain, fit_dataclass

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


def encode_feed(feed: Feed, now_s: float) -> dict[str, Any]:
    """``feed`` as JSON, at ``now_s`` of the clock by which its lines were added."""
    whole: dict[str, Any] = encode_plain(replace(feed, steps={}, logs={}))
    whole["steps"] = _encode_ends(list(feed.steps.values()))
    # Ends first, lines get what is left: without its end a mirror waits, without lines it only says less.
    room = PUSH_BYTES - measure_json(whole)
    whole["logs"] = {step: _encode_lines(lines) for step, lines in _fit_lines(feed, now_s, room).items()}
    return whole


def read_feed(raw: Any) -> Feed | None:
    """The feed that :func:`encode_feed` made ``raw`` of; None where it is none, as what another version says."""
    steps = raw.get("steps", {}) if isinstance(raw, Mapping) else None
    if not isinstance(steps, Mapping) or not all(isinstance(done, Mapping) for done in steps.values()):
        return None
    return fit_dataclass(Feed, {**raw, "steps": {step: {**done, "step": step} for step, done in steps.items()}})


def measure_json(value: Any) -> int:
    """Bytes of ``value`` as JSON where every character beyond ASCII is escaped, its separator included."""
    # As Airflow stores an XCom: a character beyond ASCII takes six bytes, or twelve.
    return len(json.dumps(value)) + 2


def _encode_ends(ends: list[StepDone]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for words in WORDS:
        said = {done.step: _drop_defaults(_shorten_end(words, done)) for done in ends}
        if measure_json(said) <= WORDY_BYTES:
            break
    return said


def _shorten_end(words: Words, done: StepDone) -> StepDone:
    """What a mirror, or a later group's launch, needs of ``done``. The value is in the mirror's own XCom."""
    failure = done.failure and Failure(
        done.failure.kind,
        shorten_text(done.failure.message, words.text),
        shorten_text(done.failure.traceback, words.traceback),
    )
    said = StepDone(done.step, done.state, failure=failure, reason=shorten_text(done.reason, words.text))
    if words.numbers:
        said = replace(said, rows=done.rows, bytes=done.bytes, seconds=done.seconds, sizes=done.sizes)
    return replace(said, datasets=done.datasets) if words.datasets else said


def _drop_defaults(done: StepDone) -> dict[str, Any]:
    """As JSON, without its name and what has its default."""
    usual = {each.name: each.default for each in fields(done)}
    raw = encode_plain(replace(done, step=""))
    # 0 rows are a fact, and falsy.
    return {name: value for name, value in raw.items() if value == 0 or (value and value != usual.get(name))}


def _encode_lines(lines: StepLines) -> dict[str, Any]:
    return {"first": lines.first, "lines": list(lines.lines)}


def _fit_lines(feed: Feed, now_s: float, room: int) -> dict[str, StepLines]:
    """Last lines of steps: equal room for all that said something just now, then for others, the latest first."""
    latest = sorted(feed.logs, key=lambda step: -feed.logs[step].added_s)
    fresh = [step for step in latest if now_s - feed.logs[step].added_s <= FRESH_S]
    fitting: dict[str, StepLines] = {}
    for step, share in divide_fairly(
        {step: min(STEP_BYTES, _measure_lines(step, feed.logs[step])) for step in fresh}, room
    ).items():
        if share < _measure_overhead(step):
            continue
        fitting[step] = _keep_last(feed.logs[step], share - _measure_overhead(step))
        room -= _measure_lines(step, fitting[step])
    for step in latest[len(fresh) :]:
        share = min(STEP_BYTES, room) - _measure_overhead(step)
        if share <= SHORTEST_LINE:
            break
        fitting[step] = _keep_last(feed.logs[step], share)
        room -= _measure_lines(step, fitting[step])
    return fitting


def divide_fairly(wanted: Mapping[str, int], room: int) -> dict[str, int]:
    """Shares of ``room``: what each wants, but none more than an equal share of what the modest leave over."""
    shares: dict[str, int] = {}
    # Max-min fairness: from the smallest wish up, what one leaves over is shared among those that want more.
    for at, step in enumerate(sorted(wanted, key=lambda step: wanted[step])):
        shares[step] = max(0, min(wanted[step], room // (len(wanted) - at)))
        room -= shares[step]
    return shares


def _measure_lines(step: str, lines: StepLines) -> int:
    return _measure_overhead(step) + sum(map(measure_json, lines.lines))


def _measure_overhead(step: str) -> int:
    return measure_json(step) + measure_json({"first": 10**9, "lines": []})


def _keep_last(lines: StepLines, room: int) -> StepLines:
    """The last lines that fit; of the very last as much as does."""
    kept: list[str] = []
    for line in reversed(lines.lines):
        if measure_json(line) > room:
            break
        room -= measure_json(line)
        kept.append(line)
    if not kept and lines.lines and room >= SHORTEST_LINE:
        kept = [_cut_line(lines.lines[-1], room)]
    return StepLines(lines.first + len(lines.lines) - len(kept), tuple(reversed(kept)))


def _cut_line(line: str, room: int) -> str:
    chars = len(line)
    # By a quarter at a time: characters are of 1 to 12 bytes, so bytes do not tell where to cut.
    while chars and measure_json(shorten_text(line, chars)) > room:
        chars = chars * 3 // 4
    return shorten_text(line, chars)
