"""Which record may come in which state: each pair of the table, on a story that is in that state.

::

    STORIES     steady ── requested ── catching_up ── fenced ── retiring      of epochs 1 and 2, windows of ten seconds
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_dagsched.switch.fold import IllegalTransition, find_broken_rule, fold
from airflow_dagsched.switch.record_rules import RECORD_KINDS, RECORDS, name_record
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.state import STATES, find_state
from airflow_dagsched.switch.story import Story
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

NOTHING = Story()
STEADY = tell(*FIRST, make_batch(1, 1, 10, 20))
REQUESTED = go_on(STEADY, make_epoch(2, boundary=30.0))
CATCHING_UP = go_on(REQUESTED, make_started(2), make_batch(2, 0, 30, 40, kept=0))
FENCED = go_on(CATCHING_UP, make_fence(1, 40))
PASSED = go_on(FENCED, make_batch(1, 2, 30, 40, watermark=40))
RETIRING = go_on(PASSED, make_drained(1))
STOPPED = go_on(RETIRING, make_stopped(1))
FIRST_RETIRING = tell(*FIRST[:3])
STORIES = {
    "steady": STEADY,
    "requested": REQUESTED,
    "catching_up": CATCHING_UP,
    "fenced": FENCED,
    "retiring": RETIRING,
}
SAMPLES: dict[str, Record] = {
    "epoch": make_epoch(3, x_after=1),
    "started old": make_started(1),
    "started new": make_started(2),
    "batch old": make_batch(1, 2),
    "batch new": make_batch(2, 1),
    "fence": make_fence(1, 40),
    "drained old": make_drained(1),
    "stopped old": make_stopped(1),
    "stopped new": make_stopped(2),
    "current new": make_current(2),
    "aborted new": make_aborted(2),
    "other": make_batch(7, 0),
}


def put_next(story: Story, record: Record) -> Record:
    return number((record,), story.last + 1)[0]


def test_every_pair_is_in_the_table():
    assert set(RECORDS) == {(state, kind) for state in STATES for kind in RECORD_KINDS}


def test_what_differs_by_a_lease_alone_is_one_to_records():
    for kind in RECORD_KINDS:
        for lease, log in (("deploying", "requested"), ("aborted", "steady")):
            after = {log if each == lease else each for each in RECORDS[lease, kind].to}
            assert after == {*RECORDS[log, kind].to}


@pytest.mark.parametrize("state", STORIES)
def test_stories_are_in_their_states(state: str):
    assert find_state(STORIES[state]) == state


@pytest.mark.parametrize("kind", RECORD_KINDS)
@pytest.mark.parametrize("state", STORIES)
def test_what_may_not_come_raises_with_the_whole_story_and_changes_nothing(state: str, kind: str):
    story = STORIES[state]
    record = put_next(story, SAMPLES[kind])
    named = name_record(story, record)
    rule = RECORDS[state, named]
    if rule.to and not rule.guard(story, record):
        assert find_state(fold(story, record)) in rule.to
        return
    before = repr(story)
    with pytest.raises(IllegalTransition) as caught:
        fold(story, record)
    assert repr(story) == before
    text = str(caught.value)
    assert all(f"epoch {epoch} of run" in text for epoch in story.epochs)
    assert state in text


def test_each_pair_that_may_come_is_seen():
    """In the samples, or one of the stories beside them: no rule allows what never comes."""
    others = [
        NOTHING,
        FIRST_RETIRING,
        PASSED,
        STOPPED,
        tell(*FIRST[:2]),
        tell(*FIRST[:1]),
        go_on(STOPPED, make_current(2)),
    ]
    more = [
        make_epoch(1),
        make_epoch(2),
        make_epoch(3, x_after=2),
        make_started(1),
        make_batch(1, 0),
        make_batch(1, 1),
        make_batch(1, 3),
        make_aborted(1),
        make_stopped(1),
        make_current(1),
    ]
    sequential = go_on(STEADY, make_epoch(2, x_overlap="sequential"))
    found = set()
    for story in (*STORIES.values(), *others, sequential):
        for sample in (*SAMPLES.values(), *more):
            record = put_next(story, sample)
            if not find_broken_rule(story, record):
                found.add((find_state(story), name_record(story, record)))
    allowed = {pair for pair, rule in RECORDS.items() if rule.to}
    assert {pair for pair in allowed if pair[0] not in ("deploying", "aborted")} == found


# --- guards


def refuse(story: Story, record: Record, rule: str) -> None:
    assert rule in find_broken_rule(story, put_next(story, record))


def allow(story: Story, record: Record) -> None:
    assert find_broken_rule(story, put_next(story, record)) == ""


def test_records_are_numbered_one_by_one():
    assert "has the number 6" in find_broken_rule(STEADY, replace(make_batch(1, 2), n=7))
    assert "has the number 6" in find_broken_rule(STEADY, replace(make_batch(1, 2), n=5))


def test_epochs_are_numbered_one_by_one_and_follow_the_owner():
    refuse(STEADY, make_epoch(3), "one by one")
    refuse(STEADY, make_epoch(2, x_after=2), "follow the owner")
    allow(go_on(REQUESTED, make_aborted(2)), make_epoch(3, x_after=1))
    refuse(go_on(REQUESTED, make_aborted(2)), make_epoch(2), "one by one")


def test_a_fence_is_behind_all_that_either_graph_has_emitted():
    """The new one dropped what it emitted: nobody else will."""
    refuse(CATCHING_UP, make_fence(1, 30), "windows of out are behind it")
    allow(CATCHING_UP, make_fence(1, 40))
    refuse(go_on(CATCHING_UP, make_batch(1, 2, 30, 50)), make_fence(1, 40), "windows of out are behind it")


def test_a_fence_is_not_before_the_boundary():
    story = go_on(STEADY, make_epoch(2, boundary=60.0), make_started(2))
    refuse(story, make_fence(1, 50), "are behind it")
    allow(story, make_fence(1, 60))


def test_a_fence_is_not_before_the_one_that_made_the_owner():
    owner = go_on(STOPPED, make_current(2))
    story = go_on(owner, make_epoch(3, x_after=2), make_started(3))
    refuse(story, make_fence(2, 30), "are behind it")
    allow(story, make_fence(2, 40))


def test_a_fence_comes_before_the_new_graph_runs_only_where_there_is_no_room_for_both():
    refuse(REQUESTED, make_fence(1, 40), "must run before")
    for fields in ({"x_overlap": "sequential"}, {"x_overlap": "cold"}, {"channel": "carry"}):
        allow(go_on(STEADY, make_epoch(2, **fields)), make_fence(1, 40))


def test_a_query_that_ended_earlier_has_a_fence_of_its_own():
    queries = ("out", "slow")
    started = (make_epoch(1, x_queries=queries), make_started(1), make_batch(1, 0, 10, 40), make_current(1))
    slow = make_batch(1, 0, 10, 20, query="slow")
    story = tell(*started, slow, make_stopped(1), make_epoch(2, x_overlap="cold", x_queries=queries))
    allow(story, make_fence(1, 40, x_upto={"slow": 20.0}))
    refuse(story, make_fence(1, 40, x_upto={"slow": 10.0}), "windows of slow")


def test_the_old_graph_is_drained_once_each_query_began_a_batch_behind_the_fence():
    refuse(FENCED, make_drained(1), "not all of its queries")
    refuse(go_on(FENCED, make_batch(1, 2, 30, 30, watermark=39.9)), make_drained(1), "not all of its queries")
    allow(PASSED, make_drained(1))


def test_a_query_of_chained_operators_needs_more_batches_behind_the_fence():
    first = (make_epoch(1, x_drain=2), *FIRST[1:])
    story = tell(*first, make_epoch(2), make_started(2), make_fence(1, 10), make_batch(1, 1, watermark=10))
    refuse(story, make_drained(1), "not all of its queries")
    allow(go_on(story, make_batch(1, 2, watermark=10)), make_drained(1))


def test_a_query_without_a_batch_keeps_the_old_graph():
    first = (make_epoch(1, x_queries=("out", "idle")), *FIRST[1:])
    story = tell(*first, make_epoch(2), make_started(2), make_fence(1, 10), make_batch(1, 1, watermark=10))
    refuse(story, make_drained(1), "not all of its queries")


def test_the_new_graph_is_current_once_the_old_one_is_stopped():
    refuse(RETIRING, make_current(2), "is not stopped")
    allow(STOPPED, make_current(2))


def test_what_is_stopped_is_started_before_it_has_a_batch_again():
    stopped = go_on(STEADY, make_stopped(1))
    refuse(stopped, make_batch(1, 2), "stopped")
    refuse(stopped, make_stopped(1), "stopped already")
    allow(go_on(stopped, make_started(1)), make_batch(1, 2))


def test_batches_of_a_query_come_one_by_one():
    refuse(STEADY, make_batch(1, 3), "not the next batch")
    refuse(STEADY, make_batch(1, 1), "recorded already")
    refuse(STEADY, make_batch(1, 1, query="other"), "not the next batch")
    allow(STEADY, make_batch(1, 0, query="other"))


def test_what_is_kept_is_what_the_epoch_owns():
    refuse(STEADY, make_batch(1, 2, 30, 40, kept=1), "not what the epoch owns")
    refuse(CATCHING_UP, make_batch(2, 1, 50, 60), "not what the epoch owns")
    allow(FENCED, make_batch(2, 1, 50, 60))
    allow(FENCED, make_batch(2, 1, 30, 60, kept=2))
    refuse(FENCED, make_batch(2, 1, 30, 40, kept=0, files=("part-0",)), "files of no rows")
    refuse(FENCED, make_batch(2, 1, 30, None), "rows have windows")
    refuse(RETIRING, make_batch(1, 3, 40, 40), "not what the epoch owns")
    allow(RETIRING, make_batch(1, 3, 40, 40, kept=0))


def test_no_batch_counts_of_a_graph_whose_state_was_handed_on():
    story = go_on(STEADY, make_epoch(2, channel="carry"), make_fence(1, 40))
    refuse(story, make_batch(1, 2), "handed over")


def test_the_first_graph_can_be_given_up_until_it_has_a_batch():
    started = tell(*FIRST[:2])
    allow(started, make_aborted(1))
    refuse(FIRST_RETIRING, make_aborted(1), "not in state 'retiring'")
    allow(go_on(started, make_aborted(1)), make_epoch(2, x_after=0))
