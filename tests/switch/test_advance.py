"""What is to be done: of each state and event, and of the whole way through a switch.

Stories are those of ``test_record_rules``: epoch 1 is the owner, epoch 2 its successor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_dagsched.switch.advising.advance import EVENTS, LIMITS, OBSERVED, advance
from airflow_dagsched.switch.advising.advice import (
    Advice,
    Answer,
    Append,
    Command,
    Deploy,
    FinishMoves,
    Halt,
    Hold,
    Wanted,
)
from airflow_dagsched.switch.diagram import draw_states
from airflow_dagsched.switch.fold import find_broken_rule
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.record_rules import RECORDS
from airflow_dagsched.switch.records import Aborted, Current, Drained, Epoch, Fence, Stopped
from airflow_dagsched.switch.say import SENTENCES, tell_reason
from airflow_dagsched.switch.signs import Ended, Seen, Sign, Starts
from airflow_dagsched.switch.state import STATES
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
    tell,
)
from tests.switch.test_record_rules import CATCHING_UP, FENCED, NOTHING, PASSED, REQUESTED, RETIRING, STEADY, STOPPED

WANTED = Wanted("code 2", "run 2", "wanted", {"out": ("in",)}, window=10.0)
BOTH = frozenset({1, 2})
CAUGHT_UP = go_on(CATCHING_UP, make_batch(1, 2, watermark=40.0), make_batch(2, 1, watermark=40.0))
MANUAL = go_on(STEADY, make_epoch(2, x_confirm="manual"), make_started(2), make_batch(2, 0, 30, 40, kept=0))
SEQUENTIAL = go_on(STEADY, make_epoch(2, x_overlap="sequential"))
CARRY = go_on(STEADY, make_epoch(2, channel="carry"))
DEAD = go_on(STEADY, make_stopped(1))
COLD = go_on(DEAD, make_epoch(2, x_overlap="cold"))
READY = Seen(100.0, BOTH, {2: Sign(2, "app 2", 90.0, "ready")})
AUTHORS = Ended(1, "author", 60.0, "out", "no such column")


def look(*held: int, now: float = 100.0, **fields: Any) -> Seen:
    return Seen(now, frozenset(held), **fields)


def ask(story: Story, seen: Seen, wanted: Wanted | None = None) -> tuple[Command, ...]:
    """The commands; a record among them is one that may come."""
    advice = advance(story, seen, wanted)
    if advice.record is not None:
        assert find_broken_rule(story, advice.record) == ""
        assert advice.record.at == seen.now
    return advice.commands


def get_record(story: Story, seen: Seen, wanted: Wanted | None = None) -> Any:
    ask(story, seen, wanted)
    return advance(story, seen, wanted).record


def get_answer(commands: tuple[Command, ...]) -> tuple[str, Reason]:
    (answer,) = (each for each in commands if isinstance(each, Answer))
    return answer.kind, answer.reason


def test_every_pair_is_in_the_table():
    assert set(OBSERVED) == {(state, event) for state in STATES for event in EVENTS}


# --- the ways through a switch


def test_a_flow_begins():
    record = get_record(NOTHING, look(), WANTED)
    assert isinstance(record, Epoch)
    assert (record.epoch, record.x_after, record.start, record.boundary, record.x_overlap) == (
        1,
        0,
        None,
        None,
        "beside",
    )
    asked = tell(make_epoch(1))
    assert ask(asked, look()) == (Deploy(1),)
    assert ask(asked, look(1)) == ()
    assert get_record(tell(*FIRST[:3]), look(1)) == Current(n=4, at=100.0, epoch=1)


def test_a_replayed_switch():
    """In the order in which its records come."""
    steady = look(1)
    record = get_record(STEADY, steady, WANTED)
    assert (record.epoch, record.x_after, record.start, record.x_folder) == (2, 1, {"in": {"logOffset": 1}}, "wanted")
    assert ask(REQUESTED, steady) == (Deploy(2),)
    assert ask(REQUESTED, look(*BOTH)) == ()
    assert ask(CATCHING_UP, look(*BOTH)) != ()
    assert get_record(CAUGHT_UP, look(*BOTH)) == Fence(n=11, at=100.0, from_=1, to=2, upto=40.0)
    assert ask(FENCED, look(*BOTH)) == ()
    assert ask(PASSED, look(*BOTH)) == (FinishMoves(1), Append(Drained(n=11, at=100.0, epoch=1)))
    assert ask(RETIRING, look(*BOTH)) == (Halt(1),)
    record = get_record(RETIRING, look(2))
    assert (record.epoch, record.x_cause) == (1, "replaced")
    assert "replaced by epoch 2 at window 1970-01-01 00:00:40 UTC" in record.reason
    assert get_record(STOPPED, look(2)) == Current(n=13, at=100.0, epoch=2)
    assert ask(go_on(STOPPED, make_current(2)), look(2)) == ()


def test_with_room_for_one_graph_the_fence_comes_first_and_the_new_one_last():
    assert isinstance(get_record(SEQUENTIAL, look(1)), Fence)
    fenced = go_on(SEQUENTIAL, make_fence(1, 20), make_batch(1, 2, watermark=20.0))
    assert isinstance(get_record(fenced, look(1)), Drained)
    retiring = go_on(fenced, make_drained(1))
    assert ask(retiring, look(1)) == (Halt(1),)
    current = go_on(retiring, make_stopped(1), make_current(2))
    assert ask(current, look()) == (Deploy(2),)
    assert ask(current, look(2)) == ()


def test_where_state_is_handed_on_the_old_graph_ends_at_the_fence():
    """Its steps are called first: what does not fit is found while there is a way back."""
    assert ask(CARRY, look(1)) == (Deploy(2),)
    assert ask(CARRY, look(*BOTH)) == ()
    assert isinstance(get_record(CARRY, READY), Fence)
    assert ask(CARRY, replace(READY, now=800.0)) == (), "a sign of long ago"
    fenced = go_on(CARRY, make_fence(1, 20))
    assert ask(fenced, replace(READY, committed={1: {"out": 1}})) == (Halt(1),)
    assert isinstance(get_record(fenced, look(2, committed={1: {"out": 1}})), Drained)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_state_is_handed_on_once_spark_has_committed_the_batch_behind_it(is_stopped: bool):
    """The old driver was killed between the record of its last batch and the commit: it runs that once more."""
    stops = (make_stopped(1),) if is_stopped else ()
    fenced = go_on(CARRY, *stops, make_fence(1, 20))
    behind = {"out": 0}
    assert ask(fenced, look(2, committed={1: behind})) == (Deploy(1),)
    started = go_on(fenced, make_started(1))
    assert ask(started, look(*BOTH, committed={1: behind})) == ()
    assert ask(started, look(*BOTH)) == (), "nothing is known"
    assert ask(started, look(*BOTH, committed={1: {"out": 1}})) == (Halt(1),)


def test_behind_the_fence_who_takes_state_over_is_started_until_it_runs():
    fenced = go_on(CARRY, make_fence(1, 20))
    assert Deploy(2) in ask(fenced, look(1, committed={1: {"out": 1}}))
    current = go_on(fenced, make_drained(1), make_stopped(1), make_current(2))
    assert ask(current, look()) == (Deploy(2),)


def test_no_state_is_handed_on_while_windows_are_open():
    opened = go_on(STEADY, make_batch(1, 2, 30, 90, watermark=50.0), make_epoch(2, channel="carry"))
    assert ask(opened, look(1)) == (Deploy(2),)
    record = get_record(opened, READY)
    assert isinstance(record, Aborted)
    assert (record.x_cause, "emits rows of windows that may get more" in record.reason) == ("author", True)


def test_no_state_is_handed_on_before_each_query_has_a_batch():
    """Where another one had got to is not known."""
    story = tell(make_epoch(1, x_queries=("out", "slow")), *FIRST[1:], make_epoch(2, channel="carry"))
    assert get_answer(ask(story, READY))[1].code == "owner has no batch"


def test_a_state_goes_on_with_the_very_next_row():
    """Another place in a source would fit what is in it as little as another reading."""
    wanted = replace(EDITED, channel="carry", start={"in": 7})
    kind, reason = get_answer(ask(READING, look(1), wanted))
    assert (kind, reason.code, reason.names) == ("refuse", "carried source", ("in",))
    as_before = replace(wanted, sources=dict(READING.epochs[1].record.x_sources), start=None)
    assert get_record(READING, look(1), as_before).start is None


def test_drivers_that_are_lost_when_all_is_emitted_are_started_to_deliver_it():
    """Else nobody would: no other process can, and until then nothing else is due."""
    assert ask(PASSED, look()) == (Deploy(1), Deploy(2))
    alone = go_on(SEQUENTIAL, make_fence(1, 20), make_batch(1, 2, watermark=20.0))
    assert ask(alone, look()) == (Deploy(1),)
    stopped = go_on(PASSED, make_stopped(1, x_cause="person"), make_stopped(2, x_cause="person"))
    assert ask(stopped, look()) == ()


def test_after_a_graph_that_can_run_no_more():
    """The code crashed, its author mends it: no old graph is waited for."""
    record = get_record(DEAD, look(), WANTED)
    assert (record.x_overlap, record.boundary, record.x_after) == ("cold", 20.0, 1)
    assert get_record(COLD, look()).upto == 20.0
    fenced = go_on(COLD, make_fence(1, 20))
    assert ask(fenced, look()) == (Deploy(2),)
    # Its driver ends what the old one left, and there is no other to wait for.
    left, drained = ask(fenced, look(2))
    assert (left, type(drained.record)) == (FinishMoves(1), Drained)  # type: ignore[union-attr]
    retiring = go_on(fenced, make_drained(1), make_started(2))
    assert isinstance(get_record(retiring, look(2)), Current)
    assert ask(go_on(retiring, make_current(2)), look(2)) == ()


def test_one_that_was_stopped_and_runs_again_is_switched_from_as_it_runs():
    assert isinstance(get_record(go_on(COLD, make_started(1)), look(1)), Aborted)


def test_a_graph_that_starts_behind_its_fence_is_started_until_it_runs():
    fenced = go_on(COLD, make_fence(1, 20))
    assert ask(fenced, look(starts={2: Starts(3, 100.0)})) == (Deploy(2, 104.0),)
    assert ask(fenced, look(ended={2: AUTHORS})) == (Deploy(2),), "there is only forward"
    assert ask(go_on(fenced, make_started(2)), look()) == (Deploy(2),)


def test_windows_that_may_get_more_rows_are_not_given_up_unasked():
    opened = go_on(STEADY, make_batch(1, 2, 30, 90, watermark=50.0), make_stopped(1))
    kind, reason = get_answer(ask(opened, look(), WANTED))
    assert (kind, reason) == ("refuse", Reason("windows stay open", 1, 90.0, ("out",)))
    assert "of windows up to 1970-01-01 00:01:30 UTC, which is lost" in tell_reason(reason)
    wanted = Wanted("code 2", "run 2", "wanted", {"out": ("in",)}, window=10.0, open_windows=True)
    assert get_record(opened, look(), wanted).boundary == 90


def test_the_inbox_service_writes_the_fence():
    inbox = go_on(STEADY, make_epoch(2, channel="inbox"), make_started(2))
    assert ask(inbox, look(0, *BOTH)) == (Hold(2),)


def test_who_routes_into_the_inbox_is_started_as_long_as_a_graph_reads_it():
    inbox = go_on(STEADY, make_epoch(2, channel="inbox"))
    assert ask(inbox, look(*BOTH)) == (Deploy(0),)
    assert ask(inbox, look(*BOTH, starts={0: Starts(3, 90.0)})) == (Deploy(0, 94.0),)
    assert ask(inbox, look(0, *BOTH)) == ()
    assert ask(go_on(inbox, make_aborted(2)), look(1)) == ()


def test_in_a_state_that_is_paused_nothing_is_done():
    advice = advance(CATCHING_UP, look(paused=frozenset({"catching_up"})))
    assert advice == Advice("catching_up", (), (Reason("paused", text="catching_up"),))
    assert ask(CATCHING_UP, look(paused=frozenset({"fenced"}))) != ()


# --- what is asked for


def test_who_asks_for_what_runs_is_told_so():
    wanted = Wanted("code 1", "run 9", "other", {"out": ("in",)}, window=10.0)
    kind, reason = get_answer(ask(STEADY, look(1), wanted))
    assert (kind, reason.code, reason.epoch) == ("tell", "already runs", 1)
    assert Deploy(1) in ask(DEAD, look(), wanted)


def test_the_same_code_can_be_asked_for_again():
    wanted = Wanted("code 1", "run 9", "other", {"out": ("in",)}, window=10.0, again=True)
    assert isinstance(get_record(STEADY, look(1), wanted), Epoch)


def test_who_asks_twice_makes_one_epoch():
    """A launch task asks until its epoch is there, and does not ask again when that was given up."""
    mine = Wanted("code 2", "run 2", f"{2:08x}", {"out": ("in",)}, window=10.0)
    assert ask(REQUESTED, look(1), mine) == (Deploy(2),)
    assert ask(go_on(REQUESTED, make_aborted(2)), look(1), mine) == ()


def test_a_request_replaces_one_without_a_fence_and_waits_for_one_with():
    wanted = Wanted("code 3", "run 3", "wanted", {"out": ("in",)}, window=10.0)
    for story in (REQUESTED, CATCHING_UP, CAUGHT_UP):
        assert isinstance(get_record(story, look(*BOTH), wanted), Aborted)
    for story in (FENCED, RETIRING):
        assert get_answer(ask(story, look(*BOTH), wanted))[1].code == "switch ends first"
    same = Wanted("code 2", "run 3", "wanted", {"out": ("in",)}, window=10.0)
    assert get_answer(ask(CATCHING_UP, look(*BOTH), same))[1].code == "already asked for"


def test_a_new_graph_waits_for_a_batch_of_the_owner():
    story = go_on(STOPPED, make_current(2), make_epoch(3, x_after=2, x_overlap="sequential"), make_fence(2, 50))
    story = go_on(story, make_batch(2, 1, watermark=50.0), make_drained(2), make_stopped(2), make_current(3))
    assert get_answer(ask(story, look(3), WANTED))[1].code == "owner has no batch"


def test_a_boundary_in_another_century_is_refused_with_its_row():
    story = go_on(STEADY, make_batch(1, 2, x_newest={"in": 4e9}))
    kind, reason = get_answer(ask(story, look(1), WANTED))
    assert (kind, reason.code, reason.names, reason.window) == ("refuse", "ahead of the clock", ("in",), 4e9)


def test_sliding_windows_longer_than_max_ahead_are_no_row_ahead_of_the_clock():
    wanted = replace(WANTED, reach=604_790.0)
    record = get_record(go_on(STEADY, make_batch(1, 2, x_newest={"in": 15.0})), look(1), wanted)
    assert isinstance(record, Epoch)
    assert (record.x_rows_from, record.boundary) == (20.0, 604_810.0)


def test_a_fence_is_an_end_of_windows_of_both_graphs():
    """Epoch 1 has emitted windows up to 40, which epoch 2 would name 60."""
    story = go_on(STEADY, make_epoch(2, boundary=30.0, x_window=30.0), make_started(2))
    story = go_on(story, make_batch(1, 2, 30, 40, watermark=40), make_batch(2, 0, watermark=40))
    fence = get_record(story, look(*BOTH))
    assert isinstance(fence, Fence)
    assert fence.upto == 60
    assert find_broken_rule(story, fence) == ""
    assert find_broken_rule(story, replace(fence, upto=50)) == "it is inside a window"


@pytest.mark.parametrize(("story", "window", "code"), [
    (STEADY, 15.0, "unlike windows"), (DEAD, 15.0, "longer windows"), (DEAD, 30.0, "longer windows"),
])  # fmt: skip
def test_windows_of_which_no_end_is_one_of_the_others_are_refused(story: Story, window: float, code: str):
    held = () if story is DEAD else (1,)
    kind, reason = get_answer(ask(story, look(*held), replace(WANTED, window=window)))
    assert (kind, reason.code, reason.epoch, reason.seconds) == ("refuse", code, 1, 10.0)


@pytest.mark.parametrize(("story", "window"), [(STEADY, 30.0), (STEADY, 5.0), (DEAD, 5.0)])
def test_windows_of_which_each_is_a_whole_number_of_the_others_are_taken(story: Story, window: float):
    held = () if story is DEAD else (1,)
    known = story if story is DEAD else go_on(story, make_batch(1, 2, x_newest={"in": 15.0}))
    assert isinstance(get_record(known, look(*held), replace(WANTED, window=window)), Epoch)


READING = go_on(
    tell(make_epoch(1, x_sources={"in": "as it was", "b": "same"}, x_named={"b": 7}), *FIRST[1:]),
    make_batch(1, 1, x_begin={"in": 14, "b": 70}, x_newest={"in": 15.0, "b": 16.0}),
)  # fmt: skip
EDITED = replace(WANTED, reads={"out": ("in", "b")}, sources={"in": "otherwise", "b": "same"})


@pytest.mark.parametrize("story", [READING, go_on(READING, make_stopped(1))])
def test_a_source_that_is_read_otherwise_is_refused_unless_its_place_is_named(story: Story):
    held = (1,) if story is READING else ()
    kind, reason = get_answer(ask(story, look(*held), EDITED))
    assert (kind, reason.code, reason.names) == ("refuse", "source changed", ("in",))
    same = replace(EDITED, sources=READING.epochs[1].record.x_sources, start={"b": 7})
    assert isinstance(get_record(story, look(*held), same), Epoch)


def test_named_places_count_for_their_own_source_and_once():
    """That of "b" is in the file since epoch 1, which began there."""
    record = get_record(READING, look(1), replace(EDITED, start={"in": 3, "b": 7}))
    assert isinstance(record, Epoch)
    assert (record.start, record.x_named) == ({"in": 3, "b": 70}, {"in": 3, "b": 7})
    back = get_record(READING, look(1), replace(EDITED, start={"in": 3, "b": 5}))
    assert isinstance(back, Epoch)
    assert back.start == {"in": 3, "b": 5}


def test_an_owner_that_fails_for_good_is_said_to_before_it_is_switched_from():
    seen = look(ended={1: AUTHORS})
    record = get_record(STEADY, seen, WANTED)
    assert isinstance(record, Stopped)
    assert (record.x_cause, "no such column" in record.reason) == ("author", True)
    assert get_record(go_on(STEADY, record), seen, WANTED).x_overlap == "cold"


# --- what is ordered


def order(epoch: int, name: Any, *held: int) -> Seen:
    return look(*held, orders={epoch: {name: "maintenance"}})


@pytest.mark.parametrize("story", [REQUESTED, CATCHING_UP, CAUGHT_UP, MANUAL])
@pytest.mark.parametrize("name", ["abort", "stop"])
def test_before_the_fence_a_switch_is_given_up_when_ordered(story: Story, name: str):
    record = get_record(story, order(2, name, 1, 2))
    assert isinstance(record, Aborted)
    assert (record.x_cause, record.reason) == ("person", "ordered: maintenance")


@pytest.mark.parametrize("story", [FENCED, RETIRING])
def test_behind_the_fence_there_is_only_forward(story: Story):
    assert get_answer(ask(story, order(2, "abort", 1, 2)))[1].code == "only forward"


def test_a_flow_is_stopped_and_stays_so():
    assert ask(STEADY, order(1, "stop", 1)) == (Halt(1),)
    record = get_record(STEADY, order(1, "stop"))
    assert (record.x_cause, record.reason) == ("person", "ordered: maintenance")
    assert ask(go_on(STEADY, record), order(1, "stop")) == ()


def test_a_flow_that_is_stopped_behind_the_fence_goes_on_there():
    both = {each: {"stop": "maintenance"} for each in (1, 2)}
    assert ask(FENCED, look(1, 2, orders=both)) == (Halt(1), Halt(2))
    half = go_on(FENCED, get_record(FENCED, look(2, orders=both)))
    assert ask(half, look(2, orders=both)) == (Halt(2),)
    ended = go_on(half, get_record(half, look(orders=both)))
    assert ask(ended, look(orders=both)) == ()
    again = ask(ended, look(orders=both), WANTED)
    assert again[:2] == (Deploy(1), Deploy(2))


def test_a_stop_that_is_done_keeps_no_other_code_away():
    stopped = go_on(STEADY, get_record(STEADY, order(1, "stop")))
    asked = go_on(stopped, get_record(stopped, order(1, "stop"), WANTED))
    assert isinstance(get_record(asked, order(1, "stop")), Fence), "and no Aborted"


def test_a_graph_that_is_to_be_confirmed_waits_and_is_not_stuck():
    late = look(*BOTH, now=1e6)
    assert get_answer(ask(MANUAL, late))[1].code == "waits for confirm"
    assert isinstance(get_record(MANUAL, order(2, "confirm", 1, 2)), Fence)
    assert ask(CATCHING_UP, order(2, "confirm", 1, 2)) != ()


def test_a_graph_that_has_worked_for_long_and_is_still_behind_is_given_up():
    """Each batch counts as a trigger: hours in which there are no rows are none."""
    behind, begun = tell(*FIRST, make_batch(1, 1, 10, 20, watermark=20.0)), (make_epoch(2), make_started(2))
    started = go_on(behind, *begun, *(make_batch(2, batch, kept=0, watermark=5.0) for batch in range(3)))
    limits = replace(LIMITS, catch_up_s=25.0)

    def advise(trigger_s: float, story: Story = started) -> Any:
        sign = Sign(2, "app", 100.0, "running", trigger_s=trigger_s)
        return advance(story, look(1, 2, signs={2: sign}), None, limits)

    [given_up] = advise(10.0).commands
    assert isinstance(given_up, Append)
    assert isinstance(given_up.record, Aborted)
    assert given_up.record.x_cause == "time"
    assert given_up.record.reason.startswith("behind the old graph after 25 s of batches")
    assert advise(8.0).commands == ()
    [taken_over] = advise(10.0, go_on(started, make_batch(2, 3, kept=0, watermark=30.0))).commands
    assert isinstance(taken_over, Append)
    assert isinstance(taken_over.record, Fence)


# --- what fails


def test_what_is_lost_is_started_again_ever_later():
    for story in (STEADY, REQUESTED, CATCHING_UP, FENCED):
        assert Deploy(1) in ask(story, look(2))
    assert ask(STEADY, look(starts={1: Starts(3, 90.0)})) == (Deploy(1, 94.0),)
    for story in (CATCHING_UP, FENCED, RETIRING):
        assert Deploy(2) in ask(story, look(1))
    assert ask(DEAD, look()) == ()


def test_a_graph_that_fails_in_its_first_batch_is_given_up():
    started = go_on(REQUESTED, make_started(2))
    record = get_record(started, look(1, ended={2: AUTHORS}))
    assert (record.x_cause, record.reason) == ("author", "step 'out' fails: no such column")
    assert get_record(tell(*FIRST[:2]), look(ended={1: AUTHORS})).epoch == 1


def test_a_graph_that_fails_later_is_tried_again_some_times():
    seen = look(1, ended={2: AUTHORS})
    assert ask(CATCHING_UP, seen) == (Deploy(2),)
    spent = look(1, ended={2: AUTHORS}, starts={2: Starts(LIMITS.tries, 90.0)})
    assert isinstance(get_record(CATCHING_UP, spent), Aborted)
    # A batch since the last start: it counts from there.
    fresh = go_on(CATCHING_UP, make_batch(2, 1, at=95.0))
    assert ask(fresh, spent)[0] == Deploy(2, 94.0)
    assert Deploy(2, 94.0) in ask(FENCED, spent)


def test_an_owner_that_never_comes_to_a_batch_is_stopped():
    crashing = look(starts={1: Starts(LIMITS.crashes, 90.0)}, ended={1: AUTHORS})
    record = get_record(STEADY, crashing)
    assert (record.epoch, record.x_cause) == (1, "author")
    assert isinstance(get_record(CATCHING_UP, crashing), Aborted)
    kind, reason = get_answer(ask(FENCED, look(2, starts=crashing.starts, ended=crashing.ended)))
    assert (kind, reason.code, reason.window) == ("wait", "old must emit", 40.0)
    assert reason.text == "step 'out' fails: no such column"
    assert Deploy(1, 106.0) in ask(FENCED, look(2, starts=crashing.starts))


def test_who_never_says_why_it_ends_is_told_by_what_it_printed():
    silent = {1: Starts(LIMITS.crashes, 90.0), 2: Starts(LIMITS.tries, 90.0)}
    for story, killed in ((STEADY, {}), (CATCHING_UP, {2: replace(AUTHORS, kind="lost_driver", message="")})):
        record = get_record(story, look(starts=silent, ended=killed))
        folder = story.epochs[record.epoch].record.x_folder
        assert record.reason.endswith(f"what it printed is in epochs/{folder}/output/driver.log of the flow's folder")


def test_an_owner_that_never_even_starts_is_stopped_too():
    """One that came after the old graph was gone, for want of room."""
    story = go_on(SEQUENTIAL, make_fence(1, 20), make_batch(1, 2, watermark=20.0), make_drained(1), make_stopped(1))
    current = go_on(story, make_current(2))
    assert ask(current, look(starts={2: Starts(2, 90.0)})) == (Deploy(2, 92.0),)
    crashing = look(starts={2: Starts(LIMITS.crashes, 90.0)})
    assert (get_record(current, crashing).epoch, get_record(current, crashing).x_cause) == (2, "lost")


def test_what_takes_too_long_is_given_up_while_it_can_be():
    late = look(1, now=10_000.0)
    assert get_record(REQUESTED, late).x_cause == "time"
    assert "no executors in 900 s" in get_record(REQUESTED, late).reason
    assert "no batch in 1800 s" in get_record(CATCHING_UP, look(*BOTH, now=10_000.0)).reason
    for story in (FENCED, RETIRING):
        assert not isinstance(get_record(story, look(*BOTH, now=10_000.0)), Aborted)


def test_without_rows_nothing_takes_too_long():
    idle = Sign(epoch=2, application="app", at=9_999.0, phase="idle")
    started = go_on(REQUESTED, make_started(2))
    advice = advance(started, look(*BOTH, now=10_000.0, signs={2: idle}))
    assert advice == Advice("catching_up", (), (Reason("waits for rows", 2, names=("out",)),))


def test_a_graph_that_was_given_up_is_ended():
    aborted = go_on(CATCHING_UP, make_aborted(2))
    assert advance(aborted, look(*BOTH)) == Advice("aborted", (Halt(2),))
    assert advance(aborted, look(1)) == Advice("steady")


def test_what_rows_have_to_do_is_said():
    assert advance(FENCED, look(*BOTH)).waits_for == (Reason("drains", 1, 40.0),)
    behind = go_on(CATCHING_UP, make_batch(1, 2, watermark=90.0))
    assert advance(behind, look(*BOTH)).waits_for == (Reason("catches up", 2, 90.0),)


def test_every_reason_has_a_sentence():
    for code in SENTENCES:
        text = tell_reason(Reason(code, 3, 40.0, ("out",), 5.0, "why"))
        assert "{" not in text
        assert text


def test_the_drawing_has_every_state_and_every_way_of_the_table():
    drawing = draw_states()
    assert all(f"    {state}: " in drawing for state in STATES)
    for (state, kind), rule in RECORDS.items():
        for target in rule.to:
            arrows = [line for line in drawing.splitlines() if line.startswith(f"    {state} --> ") and kind in line]
            assert (target == state) or arrows
