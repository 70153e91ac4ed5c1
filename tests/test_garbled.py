"""Whatever is in a file or an XCom that another process wrote: it is read, or counts as not there; nobody stumbles.

::

    a record, an end    the step runs again              a feed      as if there were none
    a lease             it lasts from its file's date    an event    its step runs again
    a memory            the plan's own level             a journal   its draft was never committed
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.escalation.reservations import Reservation
from airflow_dagsched.launch.history.learning import Ran, update_history
from airflow_dagsched.launch.protocol.events import (
    Failure,
    Finished,
    Heartbeat,
    Stalled,
    Started,
    StepDone,
    StepLog,
    StepRunning,
    encode_batch,
)
from airflow_dagsched.launch.protocol.feed import FINISHED, Feed, decide_verdict
from airflow_dagsched.launch.protocol.feed import End as MirrorEnd
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import Manifest, StepSpec, read_manifest
from airflow_dagsched.launch.protocol.push_limit import encode_feed, read_feed
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.launch.retention.expiry import find_expired
from airflow_dagsched.launch.retention.inventory import LOCAL
from airflow_dagsched.model import codec
from airflow_dagsched.model.state import Connection, Measured, State
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS
from airflow_dagsched.provider.clusters.reservations import Reservations
from airflow_dagsched.provider.following.follower import Follower
from airflow_dagsched.provider.following.incarnation import determine_incarnation
from airflow_dagsched.provider.following.standing import Standing
from airflow_dagsched.provider.mirrors.mirror import View, update_view
from airflow_dagsched.provider.runtime.gather_facts import _is_named
from airflow_dagsched.provider.runtime.memory import Memory
from airflow_dagsched.provider.spec.run_history import recall_history
from airflow_dagsched.provider.wiring.plan_file import _read_structure
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed
from airflow_dagsched.spark.outputs.leases import Claim, Keeper, Lease, judge_lease
from airflow_dagsched.spark.outputs.swap import Swap, read_journal
from airflow_dagsched.spark.reuse.ends import Ends
from tests.garbled import garbled, one_wrong
from tests.plan.drawn import drawn, standalone

TRY = TryId("2026-03-05T06:07:08.123456Z", 1, 2)
DONE = StepDone(
    "a", "success", 3, 40, 1.5, ("b",), {"": "/d"}, "/d", "file:///t", {"n": [1, "x"]}, {"rows_x": 1.0},
    Failure("author", "m", "t"), "why",
)  # fmt: skip
EVENTS = (
    Started("app", "http://h"), StepRunning("a"), StepLog("a", ("x", "y")), Stalled("a", 300.0, "stage 1"), DONE,
    Heartbeat(2), Finished(False, 1.0, Failure("author", "m")),
)  # fmt: skip
FEED = Feed("n", TRY, began=100.0).add(EVENTS)
SPEC = StepSpec("a", "code")
COMMITTED = Committed(
    "o", "i", 1, "fp", "r", "/tmp/x", "file:///t", 3, 4, "{}", ("a=1",), "parquet", "tag", "append", "w", TRY, "g",
    (("a=1/f", 3),),
)  # fmt: skip
MANIFEST = Manifest("1", "3.11", "d", "f", "g", "r", 2, 1, "/w", "/w/e", "i", ("a",), (SPEC,), context={"n": 1})
STATE = State(
    measured={"a": Measured(runtime_s=1.0, memory_mb=5, bytes=6, recent_s=(1.0,), recent_bytes=(6,))},
    connections={"c": Connection(application_start_s=1.0, spill_mb_s=2.0, recent_start_s=(1.0,))},
)
HELD = Reservation(id="h", expires=1e6, cores={"w": 1}, memory_mb={"w": 1})
EACH = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(value: Any) -> None:
    """``value`` goes where its kind goes: into JSON, a database, a comparison."""
    text = json.dumps(encode_plain(value), allow_nan=False)
    assert "\\u0000" not in text
    json.loads(text).__repr__().encode()
    if is_dataclass(value):
        assert value == type(value)(**{each.name: getattr(value, each.name) for each in fields(value)})


def ends_of(folder: Path) -> Ends:
    manifest = Manifest(
        "1", "3.11", "d", "f", "g", "r", TRY.try_number, TRY.clear_number, str(folder), "", "i", (), (),
        incarnation=TRY.incarnation,
    )  # fmt: skip
    return Ends(LocalStore(), manifest, lambda value: value)


def end_record(folder: Path) -> Path:
    ends_of(folder).record_end("a", "fp", {"n": 1}, 5, {"m": 1.0})
    (file,) = folder.glob("ends/*/*/*.json")
    return file


@EACH
@given(data=st.data())
def test_an_end_is_read_or_the_step_runs_again(tmp_path: Path, data: st.DataObject) -> None:
    file = end_record(tmp_path)
    raw = json.loads(file.read_text())
    file.with_name("late.json").write_bytes(data.draw(garbled(raw)))
    file.unlink()
    end = ends_of(tmp_path).find_latest(SPEC)
    file.with_name("late.json").unlink()
    if end is not None:
        check(end)
        assert end.can_serve(("",)) in (True, False)
        assert end.try_id >= TryId()


def test_a_folder_among_the_ends_is_none(tmp_path: Path) -> None:
    file = end_record(tmp_path)
    file.unlink()
    file.mkdir()
    assert ends_of(tmp_path).find_latest(SPEC) is None


@EACH
@given(data=st.data())
def test_a_record_is_read_or_not_there(tmp_path: Path, data: st.DataObject) -> None:
    log = CommitLog(LocalStore(), str(tmp_path))
    file = Path(log.get_record_path("o", "i", 1))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.draw(garbled(encode_plain(COMMITTED))))
    for committed in (
        log.find_latest("o", "i"),
        log.find_of_task("o", "i", "r", "g"),
        log.find_earlier("o", "i", "w")[0],
    ):
        if committed is not None:
            check(committed)
            log.find_written_over(committed)
            LocalStore().list(committed.path)
    assert log.get_last_generation("o", "i") == 1
    assert log.refuse(str(file), "other", LocalStore())
    assert not find_expired(str(tmp_path), 1e12, 1.0, LOCAL).troubles


@EACH
@given(data=st.data())
def test_a_lease_is_read_or_lasts_from_its_file_s_date(tmp_path: Path, data: st.DataObject) -> None:
    log = CommitLog(LocalStore(), str(tmp_path))
    file = Path(tmp_path, "leases", "o", "i", "0000000001.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    lease = Lease("o", "i", 1, Claim("r", TRY, "n", "t"), 10.0)
    file.write_bytes(data.draw(garbled(encode_plain(lease))))
    held = Keeper(log, run_id="r").find_newest("o", "i")
    assert held is not None
    check(held)
    assert judge_lease(held, Claim("r", TRY, "m", "t"), 1e12, 15.0) in ("take", "stale")
    find_expired(str(tmp_path), 1e12, 1.0, LOCAL)


@EACH
@given(data=st.data())
def test_a_journal_is_read_or_was_never_finished(tmp_path: Path, data: st.DataObject) -> None:
    swap = Swap("/rec", "tag", "/t", str(tmp_path), "append", ("a=1",), "old", ("a=2",), "e", "c", "k")
    Path(tmp_path, "swap.json").write_bytes(data.draw(garbled(encode_plain(swap))))
    journal = read_journal(LocalStore(), str(tmp_path))
    if journal is not None:
        check(journal)
        journal.is_old("x")


@EACH
@given(data=st.data())
def test_a_memory_is_read_or_forgotten(tmp_path: Path, data: st.DataObject) -> None:
    known = {"level": 1, "emitted": {"0": ["a", "b"], "1": []}}
    (tmp_path / "memory.json").write_bytes(data.draw(garbled(known)))
    memory = Memory(tmp_path)
    assert 0 <= memory.level < 10
    memory.emitted(5)
    memory.note_good_end({"a"}, 1)
    memory.remember_level(2)
    assert Memory(tmp_path).level == 2


class Told:
    """A follower, and what it told."""

    def __init__(self, file: Path) -> None:
        self.feeds: list[Feed] = []
        self.follower = Follower(Feed("n", TRY), self.feeds.append, lambda done: None, lambda started: None)
        self.follower.open(str(file))


LINE = json.loads(encode_batch(EVENTS))


@EACH
@given(data=st.data())
def test_a_line_of_events_is_taken_in_whole_or_left_out(tmp_path: Path, data: st.DataObject) -> None:
    """And the line after it is taken in, whatever comes before."""
    line = data.draw(garbled(LINE)).replace(b"\n", b" ")
    file, last = tmp_path / "events.jsonl", encode_batch([StepDone("z", "success")]).encode()
    file.write_bytes(line + b"\n" + last + b"\n")
    told = Told(file)
    told.follower.catch_up()
    assert told.follower.feed.steps["z"] == StepDone("z", "success")
    check(encode_feed(told.follower.feed, 0.0))
    assert read_feed(json.loads(json.dumps(encode_feed(told.follower.feed, 0.0)))) is not None


@EACH
@given(line=garbled(LINE))
def test_a_garbled_marker_is_no_event(tmp_path: Path, line: bytes) -> None:
    told = Told(tmp_path / "events.jsonl")
    told.follower.line("nonce", f"::dagsched nonce 1 {line.decode(errors='replace')}\n")


RAW_FEED = json.loads(json.dumps(encode_feed(FEED, 0.0)))
FEEDS = st.one_of(
    one_wrong(RAW_FEED),
    st.sampled_from([5, "x", "", [], [5], {"steps": None}, {"nonce": "n", "began": "x", "try_id": None}, None, True]),
)


@EACH
@given(raw=FEEDS)
def test_a_feed_is_read_or_there_is_none_and_each_mirror_ends(raw: Any) -> None:
    for state in ("running", "up_for_retry", *sorted(FINISHED)):
        view = update_view(View(), state, raw)
        found = decide_verdict(view.state, view.feed, "a", 50.0, "launch")
        if state in FINISHED:
            assert isinstance(found, MirrorEnd)
            assert isinstance(found.reason, str)
        if view.feed is not None:
            check(view.feed)
            assert math.isfinite(view.feed.began)
            assert all(isinstance(line, str) for lines in view.feed.logs.values() for line in lines.since(0))


@EACH
@given(raw=FEEDS)
def test_a_try_asks_about_itself_whatever_feed_is_there(raw: Any) -> None:
    standing = Standing("launch", "mine", lambda: "running", lambda: raw, said=True, try_id=TRY)
    assert standing.holds() in (True, False)


@EACH
@given(text=garbled(json.loads(MANIFEST.to_json())))
def test_a_manifest_is_read_or_refused(text: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(read_manifest(text.decode(errors="replace"), "1"), Manifest)


@EACH
@given(text=garbled(json.loads(codec.encode_value(STATE))))
def test_a_history_is_read_or_empty(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "f.json").write_bytes(text)
    known = recall_history(tmp_path / "f.json")
    codec.encode_value(update_history(known, "c", [Ran(9.0, 2, (DONE,), {"a": 1.0})]))


@EACH
@given(text=garbled(json.loads(codec.encode_value(HELD))))
def test_a_reservation_is_read_or_goes(tmp_path: Path, text: bytes) -> None:
    reservations = Reservations(str(tmp_path), "yarn")
    with reservations.hold_lock():
        (tmp_path / "reservations" / "yarn" / "h.json").write_bytes(text)
        for each in reservations.list_valid(0.0):
            reservations.end(each, 1.0)


FLOW = drawn("a == b; b ~~ c")


@EACH
@given(data=st.data())
def test_a_plan_file_is_adopted_or_ignored(tmp_path: Path, data: st.DataObject) -> None:
    made = plan(FLOW, standalone(2))
    file = tmp_path / "plan.json"
    file.write_bytes(data.draw(garbled(json.loads(codec.encode_value(made)))))
    with suppress(InvalidInput):
        _read_structure(file, FLOW, DEFAULTS)


@pytest.mark.parametrize(
    "known", [None, "", "x", 5, ["2026"], {"a": 1}, True, "2026-03-05", "٢٠٢٦-03-05T06:07:08.123456Z"]
)
def test_an_incarnation_that_cannot_be_read_is_kept_anew(known: Any) -> None:
    kept: list[str] = []
    assert determine_incarnation(None, lambda: known, kept.append) == ""
    assert kept == [""]


@pytest.mark.parametrize("skipped", [None, 5, "ab", [None], [[]], [{}], {"a": 1}, [5]])
def test_a_decision_to_skip_that_cannot_be_read_skips_nothing(skipped: Any) -> None:
    assert not _is_named(skipped, "a")
