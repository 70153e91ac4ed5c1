"""Each row comes to the graph that owns its window in the end, whoever routes, holds, stands still or dies.

::

    source "a", "b"    rows of any event time from 0 to 99, one or two a batch
    history            every story of the flow that there was: whoever acts may know an old one
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.switch.inbox.entries import DEAD, Entry, Held, Routed, RoutedRows
from airflow_dagsched.switch.inbox.holding import choose_fence, make_held
from airflow_dagsched.switch.inbox.inbox_story import IllegalEntry, InboxStory, fold_entry
from airflow_dagsched.switch.inbox.routing import Route, find_late_before, make_entry, make_route
from airflow_dagsched.switch.records import Record
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

SOURCES = {"a": "digest", "b": "digest"}
INBOX = {"channel": "inbox", "x_sources": SOURCES}
FIRST_INBOX = (make_epoch(1, **INBOX), *FIRST[1:])
SECOND = (make_epoch(2, **INBOX), make_started(2))


def choose_epoch(route: Route, moment: float) -> int:
    """What the rule says of a row of this event time."""
    if moment < route.dead_before:
        return DEAD
    return route.before[1] if route.before and moment < route.before[0] else route.last


def find_owner(story: Story, moment: float) -> int:
    """By the fences alone."""
    fences = [each.into for each in story.epochs.values() if each.into is not None]
    return max((fence.to for fence in fences if moment >= fence.upto), default=1)


@dataclass
class Flow:
    """A flow with two inboxes, and all that was ever true of it."""

    history: list[Story] = field(default_factory=lambda: [tell(*FIRST_INBOX)])
    inboxes: dict[str, InboxStory] = field(default_factory=lambda: dict.fromkeys(SOURCES, InboxStory()))
    routed: list[tuple[float, int, Story]] = field(default_factory=list)
    """Event time, the epoch that has the row, and the flow's story then."""

    @property
    def story(self) -> Story:
        return self.history[-1]

    def add(self, *records: Record) -> None:
        for each in records:
            self.history.append(go_on(self.story, each))

    def enter(self, source: str, entry: Entry | None) -> None:
        if entry is not None:
            self.inboxes[source] = fold_entry(self.inboxes[source], entry)

    def route(self, source: str, rows: list[float], known: Story) -> None:
        """One batch, by whoever knows this story: its entry is judged by the inbox as it is now."""
        inbox = self.inboxes[source]
        route = make_route(known, inbox)
        if route is None:
            return
        split = Counter(str(choose_epoch(route, each)) for each in rows)
        batch = RoutedRows(inbox.batch + 1, max(rows, default=None), dict(split))
        self.enter(source, make_entry(inbox, batch, inbox.last + 1, 0.0))
        self.routed += [(each, choose_epoch(route, each), self.story) for each in rows]

    def hold(self, source: str, known: Story) -> None:
        """One line of whoever holds: the next one may be another's, or nobody's."""
        if known.successor is not None and known.epochs[known.successor].started is not None:
            inbox = self.inboxes[source]
            self.enter(source, make_held(inbox, known.successor, inbox.last + 1, 0.0))

    def fence(self) -> None:
        fence = choose_fence(self.story, self.inboxes, 0, 0.0)
        if fence is not None:
            self.add(fence)

    def go_on(self, what: str) -> None:
        """What else happens to the flow, if it may now."""
        story = self.story
        old, new = story.old, story.new
        assert old is not None
        if what == "ask" and new is None:
            number = max(story.epochs) + 1
            self.add(make_epoch(number, x_after=story.owner, **INBOX), make_started(number))
        if what == "abort" and new is not None and new.into is None:
            self.add(make_aborted(new.record.epoch))
        if what == "end" and new is not None and old.out is not None:
            number = old.record.epoch
            done = old.queries["out"].last.batch if "out" in old.queries else -1
            past = make_batch(number, done + 1, watermark=old.out.upto)
            first = () if "out" in new.queries else (make_batch(new.record.epoch, 0),)
            self.add(past, *first, make_drained(number), make_stopped(number), make_current(new.record.epoch))


times = st.integers(0, 99).map(float)
steps = st.one_of(
    st.tuples(st.just("route"), st.sampled_from(sorted(SOURCES)), st.lists(times, max_size=2), st.integers(0, 3)),
    st.tuples(st.just("hold"), st.sampled_from(sorted(SOURCES)), st.integers(0, 3)),
    st.tuples(st.sampled_from(["fence", "ask", "ask", "abort", "end"])),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(steps, max_size=40))
def test_each_row_is_its_owners_in_the_end(drawn: list[tuple[object, ...]]):
    flow = Flow()
    for kind, *arguments in drawn:
        match kind, arguments:
            case "route", [source, rows, back]:
                flow.route(source, rows, flow.history[-1 - min(back, len(flow.history) - 1)])
            case "hold", [source, back]:
                flow.hold(source, flow.history[-1 - min(back, len(flow.history) - 1)])
            case "fence", _:
                flow.fence()
            case _:
                flow.go_on(str(kind))
    for moment, epoch, then in flow.routed:
        owner = find_owner(flow.story, moment)
        if epoch == DEAD:
            assert then.epochs[owner].drained, f"{moment} of epoch {owner} is thrown away while that takes rows"
        else:
            assert epoch == owner


def test_a_switch_goes_on_though_each_holder_dies_behind_its_first_line():
    flow = Flow()
    flow.route("a", [12.0], flow.story)
    flow.add(*SECOND)
    flow.hold("a", flow.story)
    flow.fence()
    assert flow.story.epochs[2].into is None, "a row of the other source may still come to the old graph"
    flow.route("b", [57.0], flow.story)
    flow.route("a", [99.0], flow.story)
    assert [moment for moment, _, _ in flow.routed] == [12.0, 57.0], "what is behind a hold waits for the fence"
    flow.hold("b", flow.story)
    flow.fence()
    assert flow.story.epochs[1].upto == 60
    flow.route("a", [59.0, 60.0], flow.story)
    assert [epoch for _, epoch, _ in flow.routed] == [1, 1, 1, 2]


def test_an_entry_by_the_rule_of_long_ago_gets_no_number_behind_a_hold():
    flow = Flow()
    old = flow.story
    flow.add(*SECOND)
    for source in SOURCES:
        flow.hold(source, flow.story)
    flow.fence()
    assert make_route(old, flow.inboxes["a"]) is None
    assert make_route(flow.story, flow.inboxes["a"]) == Route(2, (0.0, 1), 0.0)


def test_rows_wait_behind_a_hold_until_the_switch_is_given_up():
    flow = Flow()
    flow.add(*SECOND)
    flow.hold("a", flow.story)
    assert make_route(flow.story, flow.inboxes["a"]) is None
    flow.go_on("abort")
    assert make_route(flow.story, flow.inboxes["a"]) == Route(1)


def test_rows_of_windows_that_are_emitted_are_nobodys():
    flow = Flow()
    flow.route("a", [57.0], flow.story)
    flow.add(*SECOND)
    for source in SOURCES:
        flow.hold(source, flow.story)
    flow.fence()
    flow.go_on("end")
    assert make_route(flow.story, flow.inboxes["a"]) == Route(2, dead_before=60.0)


def test_behind_a_graph_that_runs_no_more_what_is_open_is_the_new_ones():
    stopped = (make_stopped(1), make_epoch(2, x_overlap="cold", **INBOX))
    fence = make_fence(1, 30.0, x_upto={"other": 20.0})
    assert make_route(tell(*FIRST_INBOX, *stopped, fence), InboxStory()) == Route(2, dead_before=20.0)


def test_of_a_flow_whose_first_graph_was_given_up_rows_wait_for_another():
    failed = (make_epoch(1, **INBOX), make_aborted(1))
    assert make_route(tell(*failed), InboxStory()) is None
    assert make_route(tell(*failed, make_epoch(2, x_after=0, **INBOX)), InboxStory()) == Route(2)


def test_an_inbox_is_routed_for_graphs_that_read_it_alone():
    assert make_route(tell(*FIRST), InboxStory()) is None


@pytest.mark.parametrize(
    ("newest", "before"),
    [((95.0, 64.0), 50.0), ((95.0,), 80.0), ((95.0, None), 0.0), ((), 0.0), ((3.0, 4.0), 0.0)],
)
def test_a_row_is_late_where_it_is_for_the_slowest_source(newest: tuple[float | None, ...], before: float):
    inboxes = [InboxStory(1, Routed(n=1, at=0.0, batch=0, newest=each, rows={}, dead={})) for each in newest]
    assert find_late_before(inboxes, lateness=10.0, windows=(10.0,)) == before


def test_what_is_dead_is_counted_over_all_batches():
    inbox = InboxStory()
    for batch, dead in enumerate(({"late": 2}, {"ahead": 1}, {"late": 1})):
        entry = make_entry(inbox, RoutedRows(batch, None, {"0": 2}, dead), inbox.last + 1, 0.0)
        assert entry is not None
        inbox = fold_entry(inbox, entry)
    assert (inbox.dead, inbox.newest) == ({"late": 3, "ahead": 1}, None)


def test_entries_come_in_order():
    inbox = fold_entry(InboxStory(), Held(n=1, at=0.0, epoch=3, newest=None))
    for entry in (
        Held(n=2, at=0.0, epoch=3, newest=None),
        Held(n=3, at=0.0, epoch=4, newest=None),
        Routed(n=2, at=0.0, batch=1, newest=None, rows={}, dead={}),
    ):
        with pytest.raises(IllegalEntry, match="may not come now"):
            fold_entry(inbox, entry)
    assert make_held(inbox, 2, 2, 0.0) is None
