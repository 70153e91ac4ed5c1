"""The sink of a source's inbox, without Spark: a batch is its event times, each a file of its own."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from airflow_dagsched.spark.files.clock import MACHINE, Clock
from airflow_dagsched.spark.files.store import LocalStore, join_path, walk_files
from airflow_dagsched.spark.streams.drafts import NEW
from airflow_dagsched.spark.streams.inbox.inbox_sink import InboxSink, StaleCheckpoint
from airflow_dagsched.spark.streams.inbox.inbox_writer import Counts
from airflow_dagsched.switch.inbox.clearing import CLEARED_AT_ONCE, DEAD_S, KEPT_ENTRIES
from airflow_dagsched.switch.inbox.holding import make_held
from airflow_dagsched.switch.inbox.routing import Route
from airflow_dagsched.switch.log.hold import hold_inboxes
from airflow_dagsched.switch.log.inbox_log import InboxLog
from airflow_dagsched.switch.places import InboxPlaces
from tests.spark.streams.drivers import Crashed, SteppedClock, SteppedStore
from tests.spark.streams.flow import Flow
from tests.switch.drawn import make_aborted, make_batch
from tests.switch.inbox.test_routing import FIRST_INBOX, SECOND, SOURCES, choose_epoch


class PlainWriter:
    """A row is a file; rows before ``late_before`` are dead."""

    def __init__(self, store: SteppedStore) -> None:
        self.store = store

    def write(self, df: Sequence[float], folder: str, route: Route, late_before: float) -> Counts:
        live = [row for row in df if row >= late_before and choose_epoch(route, row)]
        for row in df:
            place = f"rows/dagsched_epoch={choose_epoch(route, row)}" if row in live else "dead"
            self.store.write_text(join_path(folder, NEW, place, f"{row}-{folder.rpartition('-')[2]}"), "")
        self.store.mkdirs(join_path(folder, NEW))
        return Counts(max(live, default=None), {}, {"late": len(df) - len(live)} if len(live) < len(df) else {})

    def execute(self, df: Sequence[float]) -> None:
        pass


class Site:
    """A flow with two inboxes."""

    def __init__(self, folder: Path) -> None:
        self.flow = Flow(folder)
        self.flow.add(*FIRST_INBOX)
        self.boxes = {name: self.flow.places.name_inbox(name) for name in SOURCES}

    def open(
        self,
        source: str = "a",
        step: Callable[[], None] = lambda: None,
        check: Callable[[], None] = lambda: None,
        clock: Clock = MACHINE,
    ) -> InboxSink:
        """The sink of a driver that has just started."""
        store = SteppedStore(step, has_locks=True)
        return InboxSink(
            flow=self.flow.open_log(), source=source, boxes=self.boxes, store=store, writer=PlainWriter(store),
            lateness=lambda: 10.0, check=check, clock=clock,
        )  # fmt: skip

    def hold(self) -> None:
        self.flow.log.read()
        hold_inboxes(self.flow.places, self.flow.log, 2)

    def list_rows(self, source: str = "a") -> list[str]:
        return list_files(self.boxes[source])


def list_files(places: InboxPlaces) -> list[str]:
    """Folder and event time of what is in the inbox, as often as it is there."""
    names = [
        (folder, entry.name)
        for top in ("rows", "dead")
        for folder, entry in walk_files(LocalStore(), str(places.folder / top))
    ]
    return sorted(f"{folder.removeprefix('dagsched_epoch=') or 'dead'}/{name.split('-')[0]}" for folder, name in names)


def test_rows_come_to_the_epoch_whose_windows_they_are_of(tmp_path: Path):
    site = Site(tmp_path)
    sink = site.open()
    sink.take([12.0, 27.0], 0)
    site.open("b").take([3.0], 0)
    site.flow.add(*SECOND)
    site.hold()
    sink.take([29.0, 30.0], 1)
    assert site.list_rows() == ["1/12.0", "1/27.0", "1/29.0", "2/30.0"]


def test_a_batch_that_is_repeated_changes_nothing(tmp_path: Path):
    site = Site(tmp_path)
    site.open().take([12.0], 0)
    site.open().take([12.0], 0)
    assert site.list_rows() == ["1/12.0"]
    assert not list(site.boxes["a"].drafts.iterdir())


def test_nothing_grows_for_ever(tmp_path: Path):
    """A graph follows the source; rows that it has emitted go, with the records of their batches."""
    site = Site(tmp_path)
    sink = site.open()
    for batch in range(560):
        moment = 10.0 * batch
        sink.take([moment], batch)
        if batch % 20 == 0:
            site.flow.add(make_batch(1, batch // 20 + 1, watermark=max(moment - 10.0, 0.0)))
    assert len(site.list_rows()) <= KEPT_ENTRIES + 2 * CLEARED_AT_ONCE
    assert f"1/{moment}" in site.list_rows()
    assert len(list(site.boxes["a"].log.iterdir())) < 400
    log = InboxLog(site.boxes["a"].log)
    log.read()
    there = {f"1/{10.0 * entry.batch}" for entry in log.story.filled}
    assert there == set(site.list_rows())


def test_dead_letters_go_some_time(tmp_path: Path):
    site = Site(tmp_path)
    site.boxes["a"].folder.joinpath("dead").mkdir(parents=True)
    old, young = (site.boxes["a"].folder / "dead" / name for name in ("old-1", "young-1"))
    for path, age_s in ((old, DEAD_S + 60.0), (young, DEAD_S - 60.0)):
        path.touch()
        os.utime(path, (time.time() - age_s,) * 2)
    site.flow.add(make_batch(1, 1, watermark=1e6))
    sink = site.open()
    for batch in range(KEPT_ENTRIES + CLEARED_AT_ONCE):
        sink.take([1.0 * batch], batch)
    assert (old.exists(), young.exists()) == (False, True)


def test_a_service_without_its_checkpoint_takes_nothing(tmp_path: Path):
    """Spark would count from 0 again, and what it reads be taken for what was entered."""
    site = Site(tmp_path)
    for batch in range(2):
        site.open().take([12.0], batch)
    with pytest.raises(StaleCheckpoint, match="batch 0 of 'a' begins, and the inbox has batches up to 1"):
        site.open().take([12.0], 0)


def test_late_rows_are_kept_apart_and_counted(tmp_path: Path):
    site = Site(tmp_path)
    a, b = site.open("a"), site.open("b")
    a.take([95.0], 0)
    a.take([11.0], 1)
    b.take([64.0], 0)
    a.take([49.0, 50.0], 2)
    assert site.list_rows() == ["1/11.0", "1/50.0", "1/95.0", "dead/49.0"]
    log = InboxLog(site.boxes["a"].log)
    log.read()
    assert log.story.dead == {"late": 1}


@pytest.mark.parametrize("upto", range(12))
def test_a_driver_may_die_at_every_change(tmp_path: Path, upto: int):
    site = Site(tmp_path)
    left = [upto]

    def step() -> None:
        if left[0] == 0:
            raise Crashed
        left[0] -= 1

    with suppress(Crashed):
        site.open(step=step).take([12.0, 57.0], 0)
    assert left[0] == 0
    later = site.open()
    later.finish()
    later.take([12.0, 57.0], 0)
    later.take([60.0], 1)
    assert site.list_rows() == ["1/12.0", "1/57.0", "1/60.0"]


@pytest.mark.parametrize("upto", range(8))
def test_a_hold_may_come_at_every_change(upto: int):
    """Whoever stands still there routes by the rule that holds when it wakes."""
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        site.open("b").take([27.0], 0)
        site.flow.add(*SECOND)
        left = [upto]

        def step() -> None:
            left[0] -= 1
            if left[0] == -1:
                site.hold()

        site.open(step=step).take([12.0, 57.0], 0)
        site.hold()
        upto_window = site.flow.log.story.epochs[1].upto
        assert site.list_rows() == ["1/12.0", "1/57.0" if upto_window == 60 else "2/57.0"]
        assert upto_window in (30, 60)


def test_rows_wait_behind_a_hold_for_what_becomes_of_the_switch(tmp_path: Path):
    site = Site(tmp_path)
    site.flow.add(*SECOND)
    InboxLog(site.boxes["a"].log).append(lambda inbox, n, at: make_held(inbox, 2, n, at))
    clock = SteppedClock(lambda: site.flow.add(make_aborted(2)), [])
    site.open(clock=clock).take([57.0], 0)
    assert len(clock.passed) == 1
    assert site.list_rows() == ["1/57.0"]


def test_who_must_not_go_on_enters_nothing(tmp_path: Path):
    site = Site(tmp_path)
    checks = iter([None, OSError("the lease is lost")])

    def check() -> None:
        error = next(checks)
        if error is not None:
            raise error

    with pytest.raises(OSError, match="the lease is lost"):
        site.open(check=check).take([12.0], 0)
    assert site.list_rows() == []
    assert not list(site.boxes["a"].drafts.iterdir())
