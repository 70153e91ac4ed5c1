"""The windows of a flow that the owner and its successor have both emitted, and those that are not the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.switch.advising.orders import choose_ordered
from airflow_dagsched.switch.comparing.summary import Summaries, Summary, is_same_summary
from airflow_dagsched.switch.comparing.summary_files import SummaryFiles
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import FlowPlaces
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import Batch, Record
from airflow_dagsched.switch.story import EpochStory, Story


@dataclass(frozen=True, slots=True)
class Difference:
    """A window that the epochs have not in common."""

    window: float
    old: Summary
    new: Summary


@dataclass(frozen=True, slots=True)
class Comparison:
    """One query of both epochs. Windows are told by their ends, in seconds since 1970."""

    step: str
    old: int
    new: int
    after: float
    """Windows up to here are not compared: the old epoch was past them before the new one was asked for, or both are
    too long ago.
    """
    upto: float | None
    """Windows up to here were emitted by both; None: none."""
    same: int
    """So many windows have the same rows."""
    differences: tuple[Difference, ...]


def must_summarise(story: Story, epoch: int) -> bool:
    """Whether what the epoch's batches have is put down, for a person to compare before windows are handed over."""
    old, new = story.old, story.new
    if old is None or new is None or new.into is not None or new.record.x_confirm != "manual":
        return False
    return epoch in (old.record.epoch, new.record.epoch)


def compare_flow(folder: Path, step: str | None = None) -> tuple[Comparison, ...] | Reason:
    """Each query of both epochs of the flow in the folder, or the one of that step; or why nothing is compared."""
    flow = FlowPlaces(folder)
    log = FlowLog(flow.log)
    records, story = log.read(), log.story
    refused = choose_ordered(story, "confirm")
    if isinstance(refused, Reason):
        return refused
    if story.old is None or story.new is None:
        return Reason("no switch")
    both = [each for each in story.old.record.x_queries if each in story.new.record.x_queries]
    return tuple(_compare_query(flow, records, story.old, story.new, each) for each in both if step in (None, each))


def compare_windows(
    old: Summaries, new: Summaries, after: float, upto: float | None
) -> tuple[int, tuple[Difference, ...]]:
    """How many windows behind ``after`` up to ``upto`` are the same, and those that are not."""
    ends = sorted(end for end in {**old, **new} if upto is not None and after < end <= upto)
    pairs = [Difference(end, old.get(end, Summary()), new.get(end, Summary())) for end in ends]
    unlike = tuple(each for each in pairs if not is_same_summary(each.old, each.new))
    return len(pairs) - len(unlike), unlike


def _compare_query(
    flow: FlowPlaces, records: Iterable[Record], old: EpochStory, new: EpochStory, step: str
) -> Comparison:
    numbers = old.record.epoch, new.record.epoch
    batches = [each for each in records if isinstance(each, Batch) and each.query == step]
    told = [SummaryFiles(flow.name_epoch(each.record.x_folder), step).read(new.record.epoch) for each in (old, new)]
    after = max(new.record.boundary or 0.0, *(behind or 0.0 for _, behind in told))
    emitted = [find_emitted(batches, each) for each in (old, new)]
    upto = None if None in emitted else min(each for each in emitted if each is not None)
    same, unlike = compare_windows(told[0][0], told[1][0], after, upto)
    return Comparison(step, *numbers, after, upto, same, unlike)


def find_emitted(batches: Iterable[Batch], epoch: EpochStory) -> float | None:
    """Up to which window a query has emitted all, by its batches' records; None: none for sure."""
    ours = sorted((each for each in batches if each.epoch == epoch.record.epoch), key=lambda each: each.batch)
    # Rows need some batches from one operator with state to the next.
    return ours[-epoch.record.x_drain].watermark if len(ours) >= epoch.record.x_drain else None
