"""What goes of a stream's files, and what stays: all of an epoch that runs, pauses, or is begun from."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.retention.expiry import remove_expired
from airflow_dagsched.launch.retention.inventory import LOCAL
from airflow_dagsched.switch.drafts import STREAMS, name_drafts_folder
from airflow_dagsched.switch.log.expired import find_expired_streams
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import write_sign
from airflow_dagsched.switch.places import INBOX_SERVICE, name_flow
from airflow_dagsched.switch.records import Record, Started
from airflow_dagsched.switch.retention import (
    REQUEST_S,
    Going,
    can_inboxes_go,
    choose_drafts,
    choose_epochs,
    has_left,
)
from airflow_dagsched.switch.signs import Sign
from airflow_dagsched.switch.story import Story
from tests.switch.drawn import (
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

DAY = 86_400.0
FIRST = (make_epoch(1), make_started(1), make_batch(1, 0, 10, 20), make_current(1))
SWITCH = (
    make_epoch(2),
    make_started(2),
    make_fence(1, 30),
    make_batch(1, 1, 30, 30, watermark=30.0),
    make_drained(1),
    make_stopped(1),
    make_current(2),
)
ONE, TWO = "00000001", "00000002"
NOTHING: frozenset[int] = frozenset()


def choose(story: Story, held: frozenset[int] = NOTHING, now: float = 0.0, keep_s: float = DAY) -> Going:
    """Of two epochs whose folders were just changed."""
    return choose_epochs(story, date({ONE: now, TWO: now}), held, now, keep_s)


def date(folders: dict[str, float]) -> dict[str, tuple[str, float]]:
    """Folders that no sign of life is in."""
    return {name: ("", at) for name, at in folders.items()}


@given(st.integers(0, len(SWITCH) - 1), st.sampled_from([0.0, 100 * DAY]))
def test_nothing_goes_before_the_successor_is_the_owner(length: int, now: float):
    """Whatever the age: until then somebody may start the old graph again."""
    story = tell(*FIRST, *SWITCH[:length])
    assert not has_left(story, story.epochs[1], NOTHING)
    names = {each.record.x_folder: now for each in story.epochs.values()}
    assert choose_epochs(story, date(names), NOTHING, now, 0.0) == Going()


def test_secrets_go_at_once_and_the_rest_after_a_while():
    story = tell(*FIRST, *SWITCH)
    assert choose(story) == Going((), (ONE,))
    assert choose(story, now=2 * DAY) == Going((ONE,), ())


def test_an_epoch_whose_lease_is_held_stays():
    """Also one that was replaced: its driver is just ending."""
    story = tell(*FIRST, *SWITCH)
    assert choose(story, frozenset({1, 2}), now=100 * DAY) == Going()


def test_the_folder_of_an_application_that_goes_on_with_later_epochs_stays():
    """It prints there, works there, and executors that are lost are replaced from there."""
    same = [replace(each, application="app 1") if isinstance(each, Started) else each for each in SWITCH]
    story = tell(*FIRST, *same)
    assert choose(story, frozenset({2}), now=100 * DAY) == Going()
    assert choose(tell(*FIRST, *SWITCH), frozenset({2}), now=100 * DAY) == Going((ONE,))
    assert choose(story, now=100 * DAY) == Going((ONE,))


def make_switches(count: int, application: str) -> Story:
    """A flow that was switched so often, in the application of its first epoch."""
    records: list[Record] = [make_epoch(1), make_started(1, application=application), make_batch(1, 0), make_current(1)]
    for old in range(1, count + 1):
        new, upto = old + 1, 20.0 * old
        records += [
            make_epoch(new), make_started(new, application=application), make_batch(new, 0), make_fence(old, upto),
            make_batch(old, 2 if old > 1 else 1, watermark=upto), make_drained(old), make_stopped(old),
            make_current(new), make_batch(new, 1),
        ]  # fmt: skip
    return tell(*records)


def test_the_folder_of_an_application_stays_also_when_the_log_has_forgotten_its_epoch():
    """It works there, prints there, and has its executors' files there, after however many switches."""
    story, now = make_switches(12, "app 1"), 100 * DAY
    assert 1 not in story.epochs
    folders = {ONE: ("app 1", 0.0), TWO: ("app 0", 0.0)}
    assert choose_epochs(story, folders, frozenset({13}), now, DAY) == Going((TWO,))
    assert choose_epochs(story, folders, NOTHING, now, DAY) == Going((ONE, TWO))


def test_the_owner_stays_however_long_it_is_stopped():
    """A person may start it again."""
    story = tell(*FIRST, make_stopped(1))
    assert choose_epochs(story, date({ONE: 0.0}), NOTHING, 1000 * DAY, 0.0) == Going()


def test_a_graph_that_could_run_no_more_stays_until_the_next_has_begun_from_it():
    cold = make_epoch(2, x_overlap="cold")
    story = tell(*FIRST, make_stopped(1), cold, make_fence(1, 20), make_drained(1), make_current(2))
    assert choose_epochs(story, date({ONE: 0.0}), NOTHING, 1000 * DAY, 0.0) == Going()
    begun = tell(*FIRST, make_stopped(1), cold, make_fence(1, 20), make_drained(1), make_current(2), make_started(2))
    assert choose_epochs(begun, date({ONE: 0.0}), NOTHING, 1000 * DAY, 0.0) == Going((ONE,))


def test_an_aborted_epoch_goes():
    story = tell(*FIRST, make_epoch(2), make_aborted(2))
    assert choose(story) == Going((), (TWO,))
    assert choose(story, frozenset({2})) == Going()


def test_a_folder_of_no_epoch_goes_unless_it_may_just_be_asked_for():
    story, now = tell(*FIRST), 10 * DAY
    folders = {ONE: 0.0, "0000000a": now - 1, "0000000b": now - REQUEST_S - 1}
    assert choose_epochs(story, date(folders), NOTHING, now, 0.0) == Going(("0000000b",))
    assert choose_epochs(story, date(folders), NOTHING, now, DAY) == Going((), ("0000000b",)), "its secrets at once"


def test_drafts_go_that_no_record_has():
    """Not the last of a query that its record names, nor one that is just written."""
    last = make_batch(1, 1, 30, 30, x_tag="aaaaaaaa", files=("a",))
    story = tell(*FIRST, last)
    names = ["1-out-1-aaaaaaaa", "1-out-1-bbbbbbbb", "1-out-0-cccccccc", "1-out-2-dddddddd", "2-out-0-eeeeeeee", "x"]
    assert list(choose_drafts(story, names)) == ["1-out-1-bbbbbbbb", "1-out-0-cccccccc"]


def test_inboxes_go_once_no_graph_that_is_left_reads_them():
    """One that is stopped may go on; who takes over from it begins with what it has left."""
    reading = (make_epoch(1, channel="inbox"), *FIRST[1:])
    for records in (FIRST[:0], FIRST, (*reading, *SWITCH)):
        story, now = tell(*records), 10 * DAY
        assert can_inboxes_go(story, False, now - DAY - 1, now, DAY)
        assert not can_inboxes_go(story, False, now - DAY + 1, now, DAY)
        assert not can_inboxes_go(story, False, now - REQUEST_S + 1, now, 0.0), "a graph may just be asked for"
        assert not can_inboxes_go(story, True, 0.0, now, DAY), "its service is just ending"
    cold = make_epoch(2, channel="inbox", x_overlap="cold")
    for more in ((), (make_stopped(1),), (make_stopped(1), cold), SWITCH[:-2]):
        assert not can_inboxes_go(tell(*reading, *more), False, 0.0, 1000 * DAY, 0.0)


# --- files


class StreamFiles:
    """A work dir with one flow, whose first epoch was replaced."""

    def __init__(self, folder: Path) -> None:
        self.work_dir = folder / "work"
        self.flow = name_flow(self.work_dir, "dag", "flow")
        self.table = folder / "data" / "counts"
        self.log = FlowLog(self.flow.log, clock=lambda: 0.0)
        self.add(*FIRST, *SWITCH)
        for epoch in (1, 2):
            places = self.flow.name_epoch(f"{epoch:08x}")
            places.private.mkdir(parents=True)
            (places.private / "payload").write_text("secret")
            query = {"step": "out", "writes": {"location": f"file://{self.table}"}}
            places.manifest.write_text(json.dumps({"queries": [query, {"step": "send", "writes": None}]}))

    def add(self, *records: Record) -> None:
        for record in records:
            self.log.append(lambda story, n, at, record=record: replace(record, n=n, at=at))

    def make_draft(self, name: str) -> Path:
        place = self.table.parent / f".dagsched-{self.table.name}" / STREAMS / name_drafts_folder(self.flow) / name
        place.mkdir(parents=True)
        return place

    def find(self, now: float) -> tuple[Path, ...]:
        found = find_expired_streams(self.work_dir, now, DAY)
        assert found.troubles == ()
        return found.paths


@pytest.fixture
def files(tmp_path: Path) -> StreamFiles:
    return StreamFiles(tmp_path)


def test_what_may_go_is_found_and_removed_and_the_log_stays_whole(files: StreamFiles):
    old, new = (files.flow.name_epoch(name) for name in (ONE, TWO))
    torn, living = files.make_draft("1-out-2-aaaaaaaa"), files.make_draft("2-out-0-bbbbbbbb")
    assert files.find(now=1.0) == (torn, old.private)
    unfinished = files.flow.log / ".draft-x"
    unfinished.write_text("")
    os.utime(unfinished, (0, 0))
    paths = files.find(now=2 * DAY)
    assert paths == (torn, old.folder, unfinished)
    assert remove_expired(map(str, paths), LOCAL) == ()
    assert files.find(now=2 * DAY) == ()
    assert (living.exists(), new.private.exists(), old.folder.exists()) == (True, True, False)
    assert len(FlowLog(files.flow.log).read()) == len(FIRST) + len(SWITCH)


def test_clean_leaves_where_an_application_works_after_any_number_of_switches(files: StreamFiles):
    first, stranger, now = files.flow.name_epoch(ONE), files.flow.name_epoch("0000000a"), 100 * DAY
    write_sign(first, Sign(1, "app 2", 0.0, "running"))
    for places in (first, stranger):
        places.output.parent.mkdir(parents=True)
    printed = stranger.output
    printed.write_text("a line")
    for old in range(2, 13):
        new, upto = old + 1, 30.0 * old
        files.add(
            make_epoch(new), make_started(new, application="app 2"), make_batch(new, 0), make_fence(old, upto),
            make_batch(old, 0 if old == 2 else 1, watermark=upto), make_drained(old), make_stopped(old),
            make_current(new),
        )  # fmt: skip
    for each in files.flow.folder.rglob("*"):
        os.utime(each, (0, 0))
    os.utime(printed, (now, now))
    lease = files.flow.name_leases(13)
    lease.mkdir(parents=True)
    (lease / "0000000001.json").write_text(json.dumps({"expires": now}))
    assert not {first.folder, first.private, stranger.folder} & {*files.find(now)}
    assert {first.folder, stranger.folder} <= {*files.find(now + 2 * DAY)}


def test_inboxes_and_what_fills_them_go_together(files: StreamFiles):
    inbox, service = files.flow.name_inbox("clicks"), files.flow.inbox_service
    for folder in (inbox.rows, service.private):
        folder.mkdir(parents=True)
    now = time.time() + 2 * DAY
    going = {files.flow.inboxes, service.folder}
    assert going <= {*files.find(now)}
    lease = files.flow.name_leases(INBOX_SERVICE)
    lease.mkdir(parents=True)
    (lease / "0000000001.json").write_text(json.dumps({"expires": now}))
    assert not going & {*files.find(now)}
    files.add(make_epoch(3, channel="inbox", x_after=2))
    assert not going & {*files.find(now + DAY)}


def test_of_a_flow_whose_log_cannot_be_read_nothing_goes(files: StreamFiles):
    (files.flow.log / "0000000003.json").write_text("{")
    found = find_expired_streams(files.work_dir, 100 * DAY, DAY)
    assert found.paths == ()
    ((path, reason),) = found.troubles
    assert path == files.flow.folder
    assert "0000000003.json" in reason


@pytest.mark.parametrize("text", ["", "[]", '{"queries": 7}', '{"queries": [7, {"writes": "x"}]}'])
def test_a_manifest_that_is_none_names_no_table(files: StreamFiles, text: str):
    files.flow.name_epoch(ONE).manifest.write_text(text)
    assert files.find(now=1.0) == (files.flow.name_epoch(ONE).private,)
