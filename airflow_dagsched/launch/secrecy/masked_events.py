"""Events as anybody may see them: what people read is without secrets, what programs follow is as it was.

A secret may be a word that is something else, too: a step's id, a state, a folder. Only texts are masked, never names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from airflow_dagsched.launch.protocol.events import (
    ColumnsRead,
    Event,
    Failure,
    Finished,
    Heartbeat,
    MadeAgain,
    Stalled,
    Started,
    StepDone,
    StepLog,
    StepRunning,
)
from airflow_dagsched.launch.secrecy.masking import Masking

MESSAGE_CHARS = 1000
TRACEBACK_CHARS = 12_000


def mask_event(event: Event, masking: Masking) -> Event:
    """``event`` without the secrets that ``masking`` knows, and with failures of a length that people read."""
    match event:
        case StepLog():
            return replace(event, lines=tuple(map(masking.text, event.lines)))
        case StepDone():
            return replace(
                event,
                value=masking.value(event.value, keys=True),
                reason=masking.text(event.reason),
                failure=_mask_failure(event.failure, masking),
                left_out={
                    name: replace(each, where=_mask(each.where, masking)) for name, each in event.left_out.items()
                },
            )
        case Finished():
            return replace(event, failure=_mask_failure(event.failure, masking))
        case Stalled():
            return replace(event, waits_for=masking.text(event.waits_for))
        case ColumnsRead():
            where = {
                output: {reader: _leave_out_secrets(asked, masking) for reader, asked in by.items()}
                for output, by in event.where.items()
            }
            return replace(event, where=where)
        case MadeAgain():
            return replace(event, where=_mask(event.where, masking))
        case Started() | StepRunning() | Heartbeat():
            return event
        case _:
            assert_never(event)


def _mask(texts: tuple[str, ...], masking: Masking) -> tuple[str, ...]:
    return tuple(map(masking.text, texts))


def _leave_out_secrets(conditions: tuple[str, ...], masking: Masking) -> tuple[str, ...]:
    """Those that have none: a masked one would be another condition."""
    return tuple(each for each in conditions if masking.text(each) == each)


def _mask_failure(failure: Failure | None, masking: Masking) -> Failure | None:
    if failure is None:
        return None
    message, traceback = masking.text(failure.message), masking.text(failure.traceback)
    # Cut once it is masked: half a secret looks like none.
    return replace(failure, message=message[:MESSAGE_CHARS], traceback=traceback[:TRACEBACK_CHARS])
