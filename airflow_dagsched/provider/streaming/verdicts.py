"""What becomes of the task that follows an epoch, by the flow's log alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.say import tell_reason
from airflow_dagsched.switch.story import EpochStory, Story


@dataclass(frozen=True, slots=True)
class End:
    """The epoch is over, and so is the task."""

    state: Literal["success", "failed"]
    reason: str
    returned: Mapping[str, Any] = field(default_factory=dict)
    """What the task returns."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A driver is to be started again: a worker does that."""

    epoch: int


Verdict = End | Lost


def judge_epoch(story: Story, epoch: int) -> End | None:
    """How the epoch ended; None: it goes on."""
    found = story.epochs.get(epoch)
    if story.owner is not None and epoch < story.owner and (found is None or found.aborted is None):
        return _tell_replaced(story, epoch, found)
    if found is None:
        return End("failed", f"epoch {epoch} is not in the stream's log")
    if found.aborted is not None:
        return End("failed", f"epoch {epoch} was given up: {found.aborted.reason}", {"epoch": epoch})
    # One that is replaced has ended only when the next one is the owner.
    if found.stopped is None or found.stopped.x_cause == "replaced":
        return None
    state: Literal["success", "failed"] = "success" if found.stopped.x_cause == "person" else "failed"
    return End(state, f"epoch {epoch} was stopped: {found.stopped.reason}", {"epoch": epoch})


def _tell_replaced(story: Story, epoch: int, found: EpochStory | None) -> End:
    out = found.out if found is not None else None
    by = out.to if out is not None else story.owner or 0
    upto = out.upto if out is not None else None
    reason = tell_reason(Reason("replaced", by, upto))
    return End("success", reason, {"epoch": epoch, "replaced_by": by, "upto": upto, "reason": reason})
