"""Story and state in words, for people: a line for each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from airflow_dagsched.switch.state import MEANING, find_state
from airflow_dagsched.switch.story import EpochStory, QueryStory, Story


def tell_story(story: Story) -> str:
    """All that is known of the flow, the newest record last."""
    state = find_state(story)
    head = f"after record {story.last}: {state} ({MEANING[state]})"
    lines = [line for number in sorted(story.epochs) for line in _tell_epoch(story, story.epochs[number])]
    return "\n".join([head, *lines])


def tell_window(window: float | None) -> str:
    """A window by its end, as people write it."""
    if window is None:
        return "none"
    try:
        return f"{datetime.fromtimestamp(window, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # a year that no calendar has
        return f"{window:.10g} s"


def _tell_epoch(story: Story, epoch: EpochStory) -> Iterator[str]:
    record = epoch.record
    role = {story.owner: "owner, ", story.successor: "successor, "}.get(record.epoch, "")
    yield f"  epoch {record.epoch} of run {record.run_id}: {role}{_tell_standing(epoch)}"
    if epoch.into:
        yield f"    from window {tell_window(epoch.into.upto)} on, behind epoch {epoch.into.from_}"
    if epoch.out:
        yield f"    up to window {tell_window(epoch.out.upto)}, then epoch {epoch.out.to}"
    yield from (f"    {name}: {_tell_query(query)}" for name, query in sorted(epoch.queries.items()))


def _tell_standing(epoch: EpochStory) -> str:
    if epoch.aborted:
        return f"aborted: {epoch.aborted.reason}"
    if epoch.stopped:
        return f"stopped: {epoch.stopped.reason}"
    if epoch.drained:
        return "drained"
    return f"started as {epoch.started.application}" if epoch.started else "not started"


def _tell_query(query: QueryStory) -> str:
    last = query.last
    return (
        f"batch {last.batch}, watermark {tell_window(last.watermark)}, newest window {tell_window(query.newest_window)}"
    )
