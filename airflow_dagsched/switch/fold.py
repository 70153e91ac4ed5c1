"""A log read from its beginning: each record is looked at before it is believed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.switch.record_rules import RECORDS, name_record
from airflow_dagsched.switch.records import Epoch, Fence, Record, encode_record
from airflow_dagsched.switch.say import tell_story
from airflow_dagsched.switch.state import find_state
from airflow_dagsched.switch.story import Story, apply_record


class IllegalTransition(DagschedError):
    """A record that may not come where it is. Nothing has changed.

    :param story: of all records before it.
    """

    def __init__(self, record: Record, story: Story, rule: str) -> None:
        self.record, self.story, self.rule = record, story, rule

    def __str__(self) -> str:
        return f"record {encode_record(self.record)} may not come now: {self.rule}\n{tell_story(self.story)}"


def fold(story: Story, record: Record) -> Story:
    """The story with the next record. Raises ``IllegalTransition``."""
    broken = find_broken_rule(story, record)
    if broken:
        raise IllegalTransition(record, story, broken)
    return apply_record(story, record)


def find_broken_rule(story: Story, record: Record) -> str:
    """What keeps the record from being the next one; empty: nothing does."""
    if record.n != story.last + 1:
        return f"the next record has the number {story.last + 1}"
    state, kind = find_state(story), name_record(story, record)
    rule = RECORDS[state, kind]
    if not rule.to:
        return f"not in state {state!r}: {kind}"
    return rule.guard(story, record)


def restore_story(records: Iterable[Record], last: int) -> Story:
    """The story that a compacted log tells, whose records were looked at when they were all there.

    :param last: number of the last record that was compacted, whether it is among them or not.

    Raises ``LookupError`` where one is of an epoch that none of them asks for.
    """
    return replace(reduce(_apply_known, records, Story()), last=last)


def _apply_known(story: Story, record: Record) -> Story:
    # Of a fence out of an epoch that was forgotten only the other end is there.
    epoch = record.to if isinstance(record, Fence) else record.epoch
    if not isinstance(record, Epoch) and epoch not in story.epochs:
        raise LookupError(f"has record {record.n} of epoch {epoch}, and none that asks for that epoch")
    return apply_record(story, record)
