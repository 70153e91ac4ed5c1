"""How a flow is: its log, what is to be seen beside it, and what follows from both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.switch.advising.advance import advance
from airflow_dagsched.switch.advising.advice import Advice
from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import read_refused
from airflow_dagsched.switch.places import STANDBY, FlowPlaces
from airflow_dagsched.switch.say import tell_ended, tell_reason, tell_refused, tell_sign, tell_story
from airflow_dagsched.switch.signs import Refused, Seen
from airflow_dagsched.switch.story import Story


@dataclass(frozen=True, slots=True)
class Status:
    """One look at a flow."""

    story: Story
    seen: Seen
    advice: Advice
    refused: Refused | None = None


def read_status(folder: Path, now: float) -> Status:
    """Look at the flow in a folder, ``now`` in seconds since 1970. Raises ``GarbledLog`` and ``IllegalTransition``."""
    flow = FlowPlaces(folder)
    log = FlowLog(flow.log)
    log.read()
    seen = look_at(flow, log.story, now)
    return Status(log.story, seen, advance(log.story, seen), read_refused(flow))


def tell_status(status: Status) -> str:
    """For people, line by line."""
    return "".join(f"{line}\n" for line in _list_lines(status))


def _list_lines(status: Status) -> Iterator[str]:
    seen = status.seen
    yield tell_story(status.story, seen.held)
    # One that has taken over is told as the driver that it is now.
    signs = (sign for epoch, sign in sorted(seen.signs.items()) if epoch != STANDBY or epoch in seen.held)
    yield from (tell_sign(sign, seen.now) for sign in signs)
    for epoch in _list_lost(status):
        yield f"no driver of epoch {epoch} runs"
        yield from ([tell_ended(epoch, seen.ended[epoch])] if epoch in seen.ended else [])
    if status.story.wants_standby and STANDBY not in seen.held:
        yield "no standby is up"
        yield from ([tell_ended(STANDBY, seen.ended[STANDBY])] if STANDBY in seen.ended else [])
    for epoch, orders in sorted(seen.orders.items()):
        yield from (f"ordered of epoch {epoch}: {order}{f', {why}' * bool(why)}" for order, why in orders.items())
    if status.refused is not None:
        yield tell_refused(status.refused)
    yield from (f"waits: {tell_reason(each)}" for each in status.advice.waits_for)


def _list_lost(status: Status) -> list[int]:
    """Epochs that are to run, and whose lease nobody holds."""
    return [
        number
        for number, each in sorted(status.story.epochs.items())
        if not (each.has_ended or each.stopped or number in status.seen.held)
    ]


def describe_status(status: Status) -> dict[str, Any]:
    """The same for programs, as JSON values."""
    return {
        "state": status.advice.state,
        "last": status.story.last,
        "owner": status.story.owner,
        "successor": status.story.successor,
        "lost": _list_lost(status),
        "drivers": {str(number): encode_plain(sign) for number, sign in sorted(status.seen.signs.items())},
        "ended": {str(number): encode_plain(each) for number, each in sorted(status.seen.ended.items())},
        "orders": {str(number): dict(each) for number, each in sorted(status.seen.orders.items()) if each},
        "refused": encode_plain(status.refused) if status.refused is not None else None,
        "waits_for": [tell_reason(each) for each in status.advice.waits_for],
    }
