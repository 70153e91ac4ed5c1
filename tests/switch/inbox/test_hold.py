"""Inboxes on real files: whoever advances the flow holds them, and adds the fence."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from airflow_dagsched.switch.inbox.entries import Entry, Held, Routed, RoutedRows
from airflow_dagsched.switch.inbox.inbox_story import InboxStory
from airflow_dagsched.switch.inbox.routing import make_entry
from airflow_dagsched.switch.log.compaction import compact_log
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.hold import hold_inboxes
from airflow_dagsched.switch.log.inbox_log import INBOX_RULES, InboxLog
from airflow_dagsched.switch.places import FlowPlaces
from airflow_dagsched.switch.records import GarbledLog
from tests.switch.inbox.test_routing import FIRST_INBOX, SECOND, SOURCES
from tests.switch.test_executor import Site
from tests.switch.test_flow_log import add


def route(flow: FlowPlaces, source: str, newest: float) -> InboxLog:
    """One more batch of a source."""
    log = InboxLog(flow.name_inbox(source).log)

    def make(inbox: InboxStory, n: int, at: float) -> Entry | None:
        return make_entry(inbox, RoutedRows(inbox.batch + 1, newest, {"1": 1}), n, at)

    log.append(make)
    return log


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A flow whose second graph has begun, with rows in both inboxes."""
    found = Site(tmp_path)
    add(found.executor.log, *FIRST_INBOX, *SECOND)
    for epoch in (1, 2):
        found.set_lease(epoch, 2_000.0)
    for source, newest in (("a", 34.0), ("b", 57.0)):
        route(found.flow, source, newest)
    return found


def test_whoever_advances_the_flow_holds_its_inboxes_and_adds_the_fence(site: Site):
    other = Executor(site.flow.folder, {}, clock=lambda: 1_000.0)
    other.step()
    assert other.log.story.epochs[1].upto == 60
    for source in SOURCES:
        inbox = InboxLog(site.flow.name_inbox(source).log)
        assert isinstance(inbox.read()[-1], Held)
    other.step()
    assert other.log.story.epochs[1].upto == 60


def test_who_goes_on_with_a_hold_keeps_what_was_held(site: Site):
    held = InboxLog(site.flow.name_inbox("a").log)
    held.append(lambda inbox, n, at: Held(n=n, at=at, epoch=2, newest=inbox.newest))
    route(site.flow, "b", 72.0)
    site.executor.log.read()
    hold_inboxes(site.flow, site.executor.log, 2)
    held.read()
    assert (held.story.last, site.executor.log.story.epochs[1].upto) == (2, 80)


def test_an_inboxs_log_is_made_shorter(tmp_path: Path):
    log = InboxLog(tmp_path)
    for batch in range(30):
        log.append(partial(make_next, RoutedRows(batch, float(batch), {"1": 2}, {"late": 1})))
        if batch == 10:
            log.append(lambda inbox, n, at: Held(n=n, at=at, epoch=2, newest=inbox.newest))
    compact_log(tmp_path, 5, INBOX_RULES)
    other = InboxLog(tmp_path)
    other.read()
    assert other.story == log.story
    assert (other.story.last, other.story.batch, other.story.newest) == (31, 29, 29.0)
    assert other.story.hold is not None
    assert (other.story.hold.n, other.story.hold.newest) == (12, 10.0)
    assert other.story.dead == {"late": 30}


def make_next(rows: RoutedRows, inbox: InboxStory, n: int, at: float) -> Entry | None:
    return make_entry(inbox, rows, n, at)


@pytest.mark.parametrize("text", ["{}", '{"kind": "routed", "n": 1}', '{"kind": "batch"}', "[]", '{"kind": "held"'])
def test_a_file_that_is_no_entry_stops_the_reader(tmp_path: Path, text: str):
    (tmp_path / "0000000001.json").write_text(text)
    with pytest.raises(GarbledLog, match=r"0000000001\.json: "):
        InboxLog(tmp_path).read()


def test_a_batch_has_one_entry(tmp_path: Path):
    first = Routed(n=1, at=1.0, batch=0, newest=None, rows={}, dead={}, tag="a")
    log = InboxLog(tmp_path, clock=lambda: 1.0)
    assert log.append(partial(make_next, RoutedRows(0, None, tag="a"))) == first
    assert log.append(partial(make_next, RoutedRows(0, None, tag="b"))) is None
