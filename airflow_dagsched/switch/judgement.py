"""Whether the rows of a batch count: judged when the batch is recorded, by all that the log has then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from airflow_dagsched.switch.story import EpochStory, Story, owned

Refusal = Literal["unknown epoch", "aborted", "not started", "stopped", "handed over", "not the next batch"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of a batch: all, none or part of its rows count, it is recorded already, or may not be committed."""

    kind: Literal["all", "none", "part", "repeated", "refused"]
    after: float | None = None
    """Of a part: windows behind this one count; None: from the beginning."""
    upto: float | None = None
    """Of a part: windows up to this one count; None: without end."""
    reason: Refusal | None = None


def judge_batch(story: Story, epoch: int, query: str, batch: int, first: float | None, last: float | None) -> Judgement:
    """What becomes of a batch whose rows are of windows from ``first`` to ``last``; None: it has no rows."""
    found = story.epochs.get(epoch)
    reason = _find_refusal(found)
    if found is None or reason is not None:
        return Judgement("refused", reason=reason)
    done = found.queries[query].last.batch if query in found.queries else -1
    # Before the state is looked at any further: Spark may still have to commit what is recorded.
    if batch <= done:
        return Judgement("repeated")
    if _is_handed_over(story, found):
        return Judgement("refused", reason="handed over")
    if batch != done + 1:
        return Judgement("refused", reason="not the next batch")
    return _judge_windows(story, found, query, first, last)


def _find_refusal(epoch: EpochStory | None) -> Refusal | None:
    if epoch is None:
        return "unknown epoch"
    if epoch.aborted is not None:
        return "aborted"
    if epoch.stopped is not None:
        return "stopped"
    return "not started" if epoch.started is None else None


def _is_handed_over(story: Story, epoch: EpochStory) -> bool:
    """Whether its state has become its successor's, which reads on where that was."""
    return epoch.out is not None and story.epochs[epoch.out.to].record.channel == "carry"


def _judge_windows(story: Story, epoch: EpochStory, query: str, first: float | None, last: float | None) -> Judgement:
    if epoch.drained or first is None or last is None:
        return Judgement("none")
    try:
        after, upto = owned(story, epoch.record.epoch, query)
    except LookupError:
        return Judgement("none")
    if (after is None or first > after) and (upto is None or last <= upto):
        return Judgement("all")
    if (after is not None and last <= after) or (upto is not None and first > upto):
        return Judgement("none")
    return Judgement("part", after, upto)
