"""Whose a window is: the story of any log says of each window what one dict, kept by hand, says.

::

    epoch 1  ─────────┤ fence 30
    epoch 2           ├───────────┤ fence 60          each window is one epoch's, whatever else is aborted or stopped
    epoch 3                       ├────────
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.switch.fold import fold, restore_story
from airflow_dagsched.switch.judgement import Judgement, judge_batch
from airflow_dagsched.switch.places import INBOX_SERVICE
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.story import KEPT_EPOCHS, Story, awaits_state, is_needed, owned
from tests.switch.drawn import (
    FIRST,
    go_on,
    make_aborted,
    make_batch,
    make_current,
    make_drained,
    make_epoch,
    make_fence,
    make_started,
    make_stopped,
    number,
    tell,
)
from tests.switch.test_record_rules import CATCHING_UP, FENCED, PASSED, RETIRING, STEADY, STOPPED

WINDOWS = range(10, 210, 10)


@dataclass
class Told:
    """A log as it is drawn, and who owns each window, by hand."""

    story: Story = field(default_factory=Story)
    records: list[Record] = field(default_factory=list)
    owner_of: dict[int, int] = field(default_factory=dict)

    def add(self, *records: Record) -> None:
        for each in number(records, self.story.last + 1):
            self.story = fold(self.story, each)
            self.records.append(each)


@st.composite
def logs(draw: st.DrawFn, most: int = 4) -> Told:
    """Switches one after the other, some given up, with batches between them."""
    told, owner, upto = Told(owner_of=dict.fromkeys(WINDOWS, 1)), 1, 0.0
    told.add(*FIRST)
    for epoch in range(2, 2 + draw(st.integers(0, most))):
        for _ in range(draw(st.integers(0, 3))):
            add_batch(told, owner, draw(st.sampled_from([0, 10, 20])))
        told.add(make_epoch(epoch, x_after=owner), make_started(epoch))
        if draw(st.booleans()):
            told.add(make_aborted(epoch))
            continue
        upto = max(upto, told.story.epochs[owner].newest_window or 0.0) + 10 * draw(st.integers(0, 2))
        told.add(make_fence(owner, upto, to=epoch))
        told.owner_of.update({window: epoch for window in WINDOWS if window > upto})
        add_batch(told, owner, 0, watermark=upto)
        told.add(make_drained(owner), make_stopped(owner), make_current(epoch))
        owner = epoch
    return told


def add_batch(told: Told, epoch: int, ahead: int, watermark: float | None = None) -> None:
    """The next batch of the epoch, with one window so far behind its newest one; 0: no rows."""
    story = told.story.epochs[epoch]
    query = story.queries.get("out")
    least = max(story.newest_window or 0.0, story.into.upto if story.into else 0.0)
    window = least + ahead if ahead else None
    told.add(
        make_batch(
            epoch,
            query.last.batch + 1 if query else 0,
            window,
            window,
            watermark=least if watermark is None else watermark,
            x_newest={"in": least + 5},
        )
    )


@given(logs())
def test_each_window_is_one_epochs(told: Told):
    for window in WINDOWS:
        owners = {epoch for epoch in told.story.epochs if owns(told.story, epoch, window)}
        assert owners == {told.owner_of[window]}


def owns(story: Story, epoch: int, window: float) -> bool:
    try:
        after, upto = owned(story, epoch, "out")
    except LookupError:
        return False
    return (after is None or window > after) and (upto is None or window <= upto)


@given(logs(), st.sampled_from(WINDOWS), st.sampled_from(WINDOWS))
def test_a_batch_is_judged_by_each_of_its_windows(told: Told, one: int, other: int):
    first, last = sorted((one, other))
    for number_, epoch in told.story.epochs.items():
        if epoch.aborted or epoch.stopped:
            continue
        following = epoch.queries["out"].last.batch + 1 if epoch.queries else 0
        judged = judge_batch(told.story, number_, "out", following, first, last)
        mine = {told.owner_of[window] == number_ for window in range(first, last + 10, 10)}
        assert judged.kind == {(True,): "all", (False,): "none"}.get(tuple(mine), "part")
        if judged.kind == "part":
            inside = {w for w in range(first, last + 10, 10) if is_inside(judged, w)}
            assert inside == {w for w in range(first, last + 10, 10) if told.owner_of[w] == number_}


def is_inside(judged: Judgement, window: float) -> bool:
    return (judged.after is None or window > judged.after) and (judged.upto is None or window <= judged.upto)


@given(logs(), st.data())
def test_what_a_story_refers_to_is_enough_to_tell_it(told: Told, data: st.DataObject):
    """What a compacted log keeps: so it can be compacted anywhere, and again."""
    at = data.draw(st.integers(0, len(told.records)))
    story = Story()
    for each in told.records[:at]:
        story = fold(story, each)
    kept = [each for each in told.records[:at] if is_needed(story, each)]
    assert restore_story(kept, at) == story
    for each in told.records[at:]:
        story = fold(story, each)
    assert story == told.story


def test_a_story_does_not_grow_with_its_batches_or_switches():
    told = Told()
    told.add(*FIRST)
    for epoch in range(2, 40):
        for _ in range(8):
            add_batch(told, epoch - 1, 10)
        upto = told.story.epochs[epoch - 1].newest_window or 0.0
        told.add(make_epoch(epoch), make_started(epoch), make_fence(epoch - 1, upto))
        add_batch(told, epoch - 1, 0, watermark=upto)
        told.add(make_drained(epoch - 1), make_stopped(epoch - 1), make_current(epoch))
    kept = [each for each in told.records if is_needed(told.story, each)]
    assert len(told.records) > 500
    assert len(told.story.epochs) == KEPT_EPOCHS + 1
    assert len(kept) <= 12 * len(told.story.epochs)


def test_epochs_that_were_given_up_are_forgotten_but_for_the_last_ones():
    told = Told()
    told.add(*FIRST)
    for epoch in range(2, 50):
        told.add(make_epoch(epoch, x_after=1), make_aborted(epoch))
    assert len(told.story.epochs) == KEPT_EPOCHS + 1
    assert told.story.owner == 1


@pytest.mark.parametrize(
    ("story", "epoch", "batch", "reason"),
    [
        (STEADY, 2, 0, "unknown epoch"),
        (go_on(CATCHING_UP, make_aborted(2)), 2, 1, "aborted"),
        (go_on(STEADY, make_epoch(2)), 2, 0, "not started"),
        (go_on(STEADY, make_stopped(1)), 1, 2, "stopped"),
        (STEADY, 1, 3, "not the next batch"),
        (go_on(STEADY, make_epoch(2, channel="carry"), make_fence(1, 20)), 1, 2, "handed over"),
    ],
)
def test_a_batch_is_refused(story: Story, epoch: int, batch: int, reason: str):
    assert judge_batch(story, epoch, "out", batch, None, None) == Judgement("refused", reason=reason)


def test_a_batch_that_is_recorded_may_be_committed_again():
    """Also after its state was handed on: then Spark may not have committed it yet."""
    carried = go_on(STEADY, make_epoch(2, channel="carry"), make_fence(1, 20))
    for story in (STEADY, carried, PASSED):
        assert judge_batch(story, 1, "out", 1, 30, 30).kind == "repeated"
        assert judge_batch(story, 1, "out", 0, 30, 30).kind == "repeated"


def test_nothing_counts_before_the_fence_or_after_the_end():
    assert judge_batch(CATCHING_UP, 2, "out", 1, 90, 90).kind == "none"
    assert judge_batch(FENCED, 2, "out", 1, 50, 90).kind == "all"
    assert judge_batch(FENCED, 2, "out", 1, 40, 40).kind == "none"
    assert judge_batch(FENCED, 1, "out", 2, 40, 50) == Judgement("part", None, 40)
    assert judge_batch(FENCED, 2, "out", 1, 40, 50) == Judgement("part", 40, None)
    assert judge_batch(RETIRING, 1, "out", 3, 40, 40).kind == "none"
    assert judge_batch(STOPPED, 1, "out", 3, 40, 40).reason == "stopped"


def test_without_rows_there_is_nothing_to_keep():
    assert judge_batch(STEADY, 1, "out", 2, None, None).kind == "none"


def test_a_graph_awaits_the_state_of_one_that_runs_and_what_fills_inboxes_awaits_none():
    story = tell(*FIRST, make_epoch(2, channel="carry"))
    assert awaits_state(story, 2)
    assert not awaits_state(story, 1)
    assert not awaits_state(story, INBOX_SERVICE)
