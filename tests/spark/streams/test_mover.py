"""A driver killed at every change it makes, and drivers that stand still and wake: each window is in the table once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.launch.retention.expiry import APART
from airflow_dagsched.spark.files.store import LocalStore, join_path, walk_files
from airflow_dagsched.spark.outputs.homes import name_hidden_folder
from airflow_dagsched.spark.outputs.locks import FencedStore
from airflow_dagsched.spark.outputs.swap import COORDINATION, list_torn
from airflow_dagsched.spark.streams.drafts import list_drafts, make_name
from airflow_dagsched.spark.streams.mover import finish_moves
from airflow_dagsched.spark.streams.sink import BatchBegin, RowCounts, StreamRefused, StreamSink
from airflow_dagsched.switch.comparing.summary import Summary
from airflow_dagsched.switch.comparing.summary_files import SummaryFiles
from airflow_dagsched.switch.drafts import STREAMS, judge_draft, parse_name
from airflow_dagsched.switch.record_rules import find_least
from airflow_dagsched.switch.records import Batch
from tests.spark.streams.drivers import Crashed, SteppedClock, SteppedDriver, list_windows, open_sink
from tests.spark.streams.flow import Flow
from tests.switch.drawn import make_aborted, make_batch, make_current, make_epoch, make_fence, make_started

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
BATCHES = ((10, 20), (), (30,), (40, 50, 60))
"""Windows of the rows of each batch of a query."""


def take_all(sink: StreamSink, batches: tuple[tuple[int, ...], ...], first: int = 0) -> None:
    for number in range(first, len(batches)):
        sink.take(batches[number], number)  # type: ignore[arg-type]


def count_drafts(sink: StreamSink) -> int:
    return len(list_drafts(LocalStore(), sink._target.place))


def crash_after(changes: int) -> Callable[[], None]:
    left = count(changes, -1)

    def step() -> None:
        if next(left) <= 0:
            raise Crashed

    return step


def test_a_batch_that_spark_plans_anew_is_not_taken_for_the_recorded_one(tmp_path: Path):
    """Spark's checkpoint was lost or restored: what the first plan had not, and the second has, would be nowhere."""
    flow, table, plan = Flow(tmp_path / "work"), str(tmp_path / "table"), ["first"]
    flow.begin()

    def open_planned() -> StreamSink:
        return open_sink(
            flow, table, read_begin=lambda batch: BatchBegin(0.0, end=f"{plan[0]} {batch}", counts=RowCounts(nulls=5))
        )

    take_all(open_planned(), BATCHES[:3])
    assert flow.list_batches()[-1].x_nulls == 5
    open_planned().take((30,), 2)  # type: ignore[arg-type]
    plan[0] = "second"
    for batch in (2, 1):
        with pytest.raises(StreamRefused, match=r"the checkpoint is older than the log.*--again"):
            open_planned().take((40,), batch)  # type: ignore[arg-type]
    # Another driver records it while this one writes: each has a plan of its own.
    plan[0] = "first"
    sink, other = open_planned(), open_planned()
    write = sink._target.writer.write

    def write_late(df: object, folder: str) -> object:
        other.take((40,), 3)  # type: ignore[arg-type]
        plan[0] = "second"
        return write(df, folder)  # type: ignore[arg-type]

    sink._target.writer.write = write_late  # type: ignore[method-assign,assignment]
    with pytest.raises(StreamRefused, match="older than the log"):
        sink.take((50,), 3)  # type: ignore[arg-type]
    assert list_windows(table) == [10, 20, 30, 40]


def test_batches_that_ran_over_nothing_are_recorded_before_the_first_whoever_dies_between(tmp_path: Path):
    """No sink has seen them, and numbers in the log have no gap."""
    for changes in count(1):
        flow, table = Flow(tmp_path / f"work-{changes}"), str(tmp_path / f"table-{changes}")
        flow.begin()
        step, has_crashed = crash_after(changes), False
        try:
            open_sink(flow, table, step, check=step, prepared=2).take((10, 20), 2)  # type: ignore[arg-type]
        except Crashed:
            has_crashed = True
        for number in (2, 3):
            open_sink(flow, table, prepared=2).take(BATCHES[number - 2], number)  # type: ignore[arg-type]
        assert [(each.batch, each.rows, each.kept) for each in flow.list_batches()] == [
            (0, 0, 0), (1, 0, 0), (2, 2, 2), (3, 0, 0),
        ]  # fmt: skip
        assert list_windows(table) == [10, 20]
        if not has_crashed:
            assert changes > 10
            return


def test_how_far_a_batch_has_read_is_noted_before_it_is_recorded(tmp_path: Path):
    """Not of what ran over nothing, nor of a batch that is executed again only for Spark to commit it."""
    flow, table, noted = Flow(tmp_path / "work"), str(tmp_path / "table"), list[tuple[int, int]]()
    flow.begin()

    def note(batch: int, begin: BatchBegin) -> None:
        noted.append((batch, len(flow.list_batches())))

    for batch in (2, 2, 3):
        open_sink(flow, table, prepared=2, note_read=note).take((10,), batch)  # type: ignore[arg-type]
    assert noted == [(2, 2), (3, 3)]


@pytest.mark.parametrize("upto", [0, 30, 50])
def test_a_driver_may_die_at_every_change(upto: int):
    """The next one repeats the batch that Spark has not committed; the fence cuts some batches, or came later."""
    for changes in count(1):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            flow, table = Flow(Path(folder) / "work"), f"{folder}/table"
            flow.begin()
            if upto:
                flow.request(2)
                flow.add(make_fence(1, upto))
            step = crash_after(changes)
            batches = ((), *BATCHES) if upto else BATCHES
            has_crashed = False
            try:
                take_all(open_sink(flow, table, step, check=step), batches)
            except Crashed:
                has_crashed = True
            # Spark repeats the last batch it began.
            last = len(flow.list_batches())
            sink = open_sink(flow, table)
            take_all(sink, batches, max(0, last - 1))
            assert list_windows(table) == [each for batch in BATCHES for each in batch if not upto or each <= upto]
            assert count_drafts(sink) == 0
            if not has_crashed:
                assert changes > 30
                return


def test_a_fence_may_come_at_every_change():
    """A batch is judged as it gets its number, however long before that it was written."""
    for changes in count(1):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            flow, table = Flow(Path(folder) / "work"), f"{folder}/table"
            flow.begin()
            flow.request(2)
            left = count(changes, -1)

            def step(flow: Flow = flow, left: Iterator[int] = left) -> None:
                if next(left) == 1:
                    flow.add(make_fence(1, max(20, find_emitted(flow))))

            take_all(open_sink(flow, table, step), ((), (10, 20, 30), (40,)))
            if next(left) > 0:
                assert list_windows(table) == [10, 20, 30, 40]
                assert changes > 20
                return
            upto = flow.log.story.epochs[1].upto or 0.0
            assert list_windows(table) == [each for each in (10, 20, 30, 40) if each <= upto]


def find_emitted(flow: Flow) -> float:
    """The newest window of which rows were recorded."""
    return max((each.last for each in flow.list_batches() if each.last), default=0.0)


def test_a_draft_that_has_no_record_is_left_until_its_batch_has_one(tmp_path: Path):
    """Whoever writes it may live; then it is somebody else's batch, and it goes."""
    flow, table = Flow(tmp_path / "work"), f"{tmp_path}/table"
    flow.begin()
    sink = open_sink(flow, table)
    place = sink._target.place
    drafts = [make_name(1, "out", batch) for batch in (0, 1)]
    for each in drafts:
        LocalStore().mkdirs(place.name_folder(each) + "/new")
    sink.finish()
    assert set(list_drafts(LocalStore(), place)) == set(drafts)
    sink.take((10,), 0)  # type: ignore[arg-type]
    assert list_drafts(LocalStore(), place) == (drafts[1],)
    assert list_windows(table) == [10]


class HalfDeletingStore(LocalStore):
    """The files of a driver that dies as it removes a folder."""

    def delete(self, path: str) -> None:
        folder, entry = next(iter(walk_files(self, path)))
        super().delete(join_path(path, folder, entry.name))
        raise Crashed


def test_a_draft_that_is_half_removed_is_not_delivered_again(tmp_path: Path):
    """Else a function would get a part of the rows under the same key."""
    flow, table = Flow(tmp_path / "work"), f"{tmp_path}/table"
    flow.begin()
    sink = open_sink(flow, table)
    place, name = sink._target.place, make_name(1, "out", 0)
    for file in ("10", "20"):
        LocalStore().write_text(join_path(place.name_folder(name), "new", file), "")
    flow.add(make_batch(1, 0, 10, 20, x_tag=name.tag, files=("10", "20")))
    calls: list[list[str]] = []

    def deliver(store: FencedStore, draft: str, record: Batch, epoch: str) -> None:
        assert epoch == flow.get_epoch(1).folder.name
        calls.append([entry.name for entry in store.list(join_path(draft, "new"))])

    with pytest.raises(Crashed):
        finish_moves(HalfDeletingStore(), place, flow.log.story, deliver)
    finish_moves(LocalStore(), place, flow.log.story, deliver)
    assert calls == [["10", "20"]]
    assert count_drafts(sink) == 0


def test_drafts_of_an_aborted_epoch_go(tmp_path: Path):
    flow = Flow(tmp_path / "work")
    flow.begin()
    flow.request(2)
    assert judge_draft(flow.log.story, make_name(2, "out", 0)) == "leave"
    flow.add(make_aborted(2))
    assert judge_draft(flow.log.story, make_name(2, "out", 0)) == "remove"
    assert judge_draft(flow.log.story, make_name(3, "out", 0)) == "leave"


def test_drafts_of_another_log_are_nobody_elses(tmp_path: Path):
    """Streams of one name in two work dirs write one table: each knows its own drafts only."""
    one, other = Flow(tmp_path / "one"), Flow(tmp_path / "other")
    for flow in (one, other):
        flow.begin()
    table = f"{tmp_path}/table"
    sinks = [open_sink(flow, table) for flow in (one, other)]
    draft = make_name(1, "out", 0)
    LocalStore().mkdirs(sinks[1]._target.place.name_folder(draft) + "/new")
    sinks[0].take((10,), 0)  # type: ignore[arg-type]
    assert list_drafts(LocalStore(), sinks[1]._target.place) == (draft,)


def test_writers_of_batches_and_who_cleans_up_leave_drafts_of_streams_alone(tmp_path: Path):
    flow, table = Flow(tmp_path / "work"), f"{tmp_path}/table"
    sink = open_sink(flow, table)
    LocalStore().mkdirs(sink._target.place.name_folder(make_name(1, "out", 0)))
    assert [entry.name for entry in LocalStore().list(name_hidden_folder(table))] == [STREAMS]
    assert list_torn(LocalStore(), table) == ()
    assert STREAMS in COORDINATION
    assert STREAMS in APART


def test_names_of_drafts_are_read_back():
    """Whatever the step is called."""
    for query in ("out", "a-1", "3-b-4", "déjà/vu"):
        name = make_name(12, query, 7)
        assert parse_name(str(name)) == name
    assert parse_name("lock") is None


def test_a_batch_that_may_not_be_committed_leaves_nothing(tmp_path: Path):
    flow, table = Flow(tmp_path / "work"), f"{tmp_path}/table"
    flow.begin()
    sink = open_sink(flow, table)
    with pytest.raises(StreamRefused, match="not the next batch"):
        sink.take((10,), 1)  # type: ignore[arg-type]
    assert (count_drafts(sink), flow.list_batches(), list_windows(table)) == (0, [], [])


def test_a_batch_waits_until_its_epoch_is_said_to_run(tmp_path: Path):
    """Spark runs a query before its driver can say so."""
    flow, table = Flow(tmp_path / "work"), f"{tmp_path}/table"
    flow.add(make_epoch(1))
    looks = count()

    def check() -> None:
        if next(looks) == 1:
            flow.add(make_started(1))

    open_sink(flow, table, check=check).take((10,), 0)  # type: ignore[arg-type]
    assert list_windows(table) == [10]


# --- drivers that stand still, and wake

WINDOWS = tuple(range(10, 80, 10))
Batches = tuple[tuple[int, ...], ...]


@st.composite
def draw_batches(draw: st.DrawFn) -> Batches:
    """All windows in order, a few a batch; batch 0 is recorded before, by hand, and has none."""
    cuts = sorted(draw(st.lists(st.integers(0, len(WINDOWS)), max_size=4)))
    ends = [0, *cuts, len(WINDOWS)]
    return ((), *(WINDOWS[first:last] for first, last in pairwise(ends)))


Turn = tuple[str, int]
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("advance"), st.integers(0, 3)),
        st.tuples(st.just("advance far"), st.integers(0, 3)),
        st.tuples(st.just("advance far"), st.integers(0, 3)),
        st.tuples(st.just("kill"), st.integers(0, 3)),
        st.tuples(st.just("start"), st.integers(1, 2)),
        st.tuples(st.just("fence"), st.integers(0, 3)),
    ),
    min_size=10,
    max_size=60,
)


class Drivers:
    """Any number of drivers of two epochs, of which none knows of another."""

    def __init__(self, folder: str, batches: dict[int, Batches]) -> None:
        self.flow, self.table = Flow(Path(folder) / "work"), f"{folder}/table"
        self.flow.begin()
        self.flow.request(2)
        self.flow.add(make_batch(2, 0))
        self.batches = batches
        self.passed: list[float] = [0.0]
        self.upto: float | None = None
        self.living: list[SteppedDriver] = []
        for epoch in (1, 1, 2):
            self.play(("start", epoch))

    def play(self, turn: Turn) -> None:
        what, number = turn
        if what == "start":
            self.living.append(SteppedDriver(lambda driver: self._work(driver, number)))
        elif what == "fence":
            self._add_fence(number)
        elif self.living:
            driver = self.living[number % len(self.living)]
            for _ in range({"advance": 1, "advance far": 9, "kill": 0}[what]):
                driver.advance()
            if what == "kill":
                driver.kill()

    def end(self) -> None:
        """All die, and one driver of each epoch does what is left."""
        for each in self.living:
            each.kill()
        for each in self.living:
            if each.error:
                raise each.error
        clock = SteppedClock(lambda: None, self.passed)
        for epoch, batches in self.batches.items():
            take_all(open_sink(self.flow, self.table, epoch=epoch, clock=clock), batches)

    def _work(self, driver: SteppedDriver, epoch: int) -> None:
        clock = SteppedClock(driver.step, self.passed)
        sink = open_sink(self.flow, self.table, driver.step, epoch, driver.step, clock)
        take_all(sink, self.batches[epoch])

    def _add_fence(self, later: int) -> None:
        self.flow.log.read()
        story = self.flow.log.story
        if self.upto is None and story.old and story.new:
            self.upto = find_least(story.old, story.new, "out") + later * 10
            self.flow.add(make_fence(1, self.upto))


@given(draw_batches(), draw_batches(), TURNS)
@settings(max_examples=60, deadline=None)
def test_drivers_that_stand_still_and_wake_do_no_harm(old: Batches, new: Batches, turns: list[Turn]):
    """Each window is in the table once, and is of the epoch that the fence gives it to; nothing is left beside it."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        drivers = Drivers(folder, {1: old, 2: new})
        for turn in turns:
            drivers.play(turn)
        drivers.end()
        assert list_windows(drivers.table) == list(WINDOWS)
        kept = {each.epoch: 0 for each in drivers.flow.list_batches()}
        for each in drivers.flow.list_batches():
            kept[each.epoch] += each.kept
        of_old = [each for each in WINDOWS if drivers.upto is None or each <= drivers.upto]
        assert (kept[1], kept[2]) == (len(of_old), len(WINDOWS) - len(of_old))
        assert count_drafts(open_sink(drivers.flow, drivers.table)) == 0


def test_while_a_person_is_awaited_both_put_down_what_their_batches_have(tmp_path: Path):
    """Of the whole batch, the new graph's rows being in no table; not of one whom nobody awaits."""
    flow, table = Flow(tmp_path / "work"), str(tmp_path / "table")
    flow.begin()
    open_sink(flow, table).take((10, 20), 0)  # type: ignore[arg-type]
    flow.add(make_current(1), make_epoch(2, x_confirm="manual"), make_started(2))
    open_sink(flow, table).take((30, 40), 1)  # type: ignore[arg-type]
    open_sink(flow, table, epoch=2).take((20, 30), 0)  # type: ignore[arg-type]
    old, new = (SummaryFiles(flow.get_epoch(epoch), "out").read(2) for epoch in (1, 2))
    assert old == ({30: Summary(1), 40: Summary(1)}, 20)
    assert new == ({20: Summary(1), 30: Summary(1)}, None)
    assert list_windows(table) == [10, 20, 30, 40]
    flow.add(make_fence(1, 40))
    open_sink(flow, table).take((50,), 2)  # type: ignore[arg-type]
    assert SummaryFiles(flow.get_epoch(1), "out").read(2) == old
