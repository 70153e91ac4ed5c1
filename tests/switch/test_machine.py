"""Switch after switch in a world that is larger than ``model`` and played at random: what is seen comes late, twice or
never, drivers are killed or stand still, people order and ask for what they like, the log is compacted.

::

    rows       "a" and "b": one every five seconds, each up to nine seconds late; lateness ten: none is too late
    windows    the author's are ten seconds long; the flow's, by which rows are judged, 10, 20 or 30, as each epoch says
    queries    "q" reads a, "r" reads a and b, each at its own pace, what a batch read is kept by its checkpoint
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from airflow_dagsched.switch.advising.advance import advance
from airflow_dagsched.switch.advising.advice import Append, Deploy, FinishMoves, Halt, Wanted
from airflow_dagsched.switch.advising.boundary import list_open
from airflow_dagsched.switch.advising.orders import choose_ordered
from airflow_dagsched.switch.advising.situation import can_stop, list_needed
from airflow_dagsched.switch.fold import find_broken_rule, fold, restore_story
from airflow_dagsched.switch.judgement import judge_batch
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import Batch, Record
from airflow_dagsched.switch.say import tell_story
from airflow_dagsched.switch.signs import Ended, Seen, Sign
from airflow_dagsched.switch.story import EpochStory, Story, is_needed
from airflow_dagsched.switch.windows import find_end, round_up
from tests.switch.checked import check_records
from tests.switch.drawn import WINDOW, make_batch, make_started, number

READS = {"q": ("a",), "r": ("a", "b")}
LATENESS = 10.0
COUNT = 60
"""Rows of each source."""
Offsets = dict[str, int]


@dataclass
class Checkpoint:
    """What Spark has on disk of one query of one epoch."""

    ends: list[Offsets] = field(default_factory=list)
    """Offsets up to which each batch reads, written before it runs."""
    done: int = 0
    """Batches committed."""


@dataclass
class Driver:
    """A process with the lease of an epoch."""

    started: bool = False
    halted: bool = False
    vetted: bool = False
    """Its graph is made, and waits for the state that is handed on to it."""
    running: dict[str, str] = field(default_factory=dict)
    """Query -> "computed" or "recorded"."""


class Switches(RuleBasedStateMachine):
    """The world; the stories, judgements and advice in it are the real ones."""

    def __init__(self) -> None:
        super().__init__()
        self.story = Story()
        self.records: list[Record] = []
        self.compacted = 0
        self.drivers: dict[int, Driver] = {}
        self.checkpoints: dict[tuple[int, str], Checkpoint] = {}
        self.handed: dict[int, dict[str, Offsets]] = {}
        """Epoch that carries state on -> where it begins."""
        self.seen: list[Seen] = []
        self.frozen: list[tuple[int, str, int]] = []
        self.orders: dict[int, dict[Any, str]] = {}
        self.ended: dict[int, Ended] = {}
        self.table: dict[tuple[str, float], int] = {}
        self.wanted: Wanted | None = None
        self.asked = 0

    @initialize(seed=st.integers(0, 999))
    def begin(self, seed: int) -> None:
        late = random.Random(seed)
        self.rows = {name: [5.0 * at + late.randint(0, 9) for at in range(COUNT)] for name in "ab"}
        self.ask("replay", "beside", "auto", False, WINDOW)

    # --- people

    @rule(
        channel=st.sampled_from(["replay", "replay", "carry"]),
        overlap=st.sampled_from(["beside", "beside", "sequential"]),
        confirm=st.sampled_from(["auto", "auto", "manual"]),
        again=st.booleans(),
        window=st.sampled_from([10.0, 10.0, 20.0, 30.0]),
    )
    def ask(self, channel: Any, overlap: Any, confirm: Any, again: bool, window: float) -> None:
        """Deploy other code, or the code of before."""
        self.asked += 1
        self.wanted = Wanted(
            f"code {self.asked // 2}", f"run {self.asked}", f"folder {self.asked}", READS, window,
            channel=channel, overlap=overlap, confirm=confirm, again=again,
        )  # fmt: skip

    @precondition(lambda self: self.story.epochs)
    @rule(order=st.sampled_from(["confirm"] * 4 + ["abort"]), back=st.integers(0, 1))
    def order(self, order: str, back: int) -> None:
        epoch = max(max(self.story.epochs) - back, 1)
        self.orders.setdefault(epoch, {})[order] = "so it is wanted"

    @rule()
    def stop(self) -> None:
        chosen = choose_ordered(self.story, "stop")
        for epoch in () if isinstance(chosen, Reason) else chosen:
            self.orders.setdefault(epoch, {})["stop"] = "enough"

    @rule()
    def take_back(self) -> None:
        """A task of the same code starts again what was stopped, once nothing is still to stop."""
        needed = list_needed(self.story)
        if any(can_stop(each) and "stop" in self.orders.get(each.record.epoch, {}) for each in needed):
            return
        for each in needed:
            if each.stopped is not None:
                self.deploy(each.record.epoch)

    # --- executors

    @rule()
    def look(self) -> None:
        orders = {epoch: dict(each) for epoch, each in self.orders.items()}
        vetted = [epoch for epoch, driver in self.drivers.items() if driver.vetted]
        signs = {epoch: Sign(epoch, f"app {epoch}", 0.0, "ready") for epoch in vetted}
        done: dict[int, dict[str, int]] = {}
        for (epoch, query), each in self.checkpoints.items():
            done.setdefault(epoch, {})[query] = each.done - 1
        self.seen.append(Seen(0.0, frozenset(self.drivers), signs, dict(self.ended), {}, orders, done))

    @precondition(lambda self: self.seen)
    @rule(back=st.integers(0, 3), asks=st.booleans())
    def act(self, back: int, asks: bool) -> None:
        """By what was seen at some time before: it is in no hurry, and may have acted by it already."""
        seen = self.seen[-1 - min(back, len(self.seen) - 1)]
        for command in advance(self.story, seen, self.wanted if asks else None).commands:
            if isinstance(command, FinishMoves) and not self.drivers:
                break  # what drivers have recorded only a driver can deliver
            if isinstance(command, Append):
                self.append(command.record)
            elif isinstance(command, Deploy):
                self.deploy(command.epoch)
            elif isinstance(command, Halt) and command.epoch in self.drivers:
                self.drivers[command.epoch].halted = True

    def deploy(self, epoch: int) -> None:
        told = self.story.epochs[epoch]
        if epoch not in self.drivers and told.stopped is not None:
            after = self.story.epochs[told.out.to] if told.out else None
            waits = after is not None and after.begun is None and not can_stop(after)
            for each in (epoch, told.out.to) if told.out and waits else (epoch,):
                self.orders.get(each, {}).pop("stop", None)
        self.drivers.setdefault(epoch, Driver())

    def append(self, record: Record) -> None:
        record = number((record,), self.story.last + 1)[0]
        assert find_broken_rule(self.story, record) == ""
        self.story = fold(self.story, record)
        self.records.append(record)

    @rule()
    def compact(self) -> None:
        kept = [each for each in self.records if is_needed(self.story, each)]
        assert restore_story(kept, self.story.last) == self.story
        assert check_records(self.records, self.compacted).violations == ()
        self.records, self.compacted = kept, self.story.last

    # --- drivers

    @precondition(lambda self: self.drivers)
    @rule(data=st.data())
    def run_driver(self, data: st.DataObject) -> None:
        """One line of one driver."""
        epoch = data.draw(st.sampled_from(sorted(self.drivers)))
        query = data.draw(st.sampled_from(sorted(READS)))
        self.go_on(epoch, query, data.draw(st.integers(0, 3)))

    @rule(rounds=st.integers(1, 12), count=st.integers(0, 1))
    def work(self, rounds: int, count: int) -> None:
        """For a while nothing is lost, and all is done in turn."""
        for _ in range(rounds):
            self.look()
            self.act(0, asks=True)
            self.run_all(count)

    @precondition(lambda self: self.drivers)
    @rule(data=st.data(), how=st.sampled_from(["killed", "frozen", "author"]))
    def lose_driver(self, data: st.DataObject, how: str) -> None:
        epoch = data.draw(st.sampled_from(sorted(self.drivers)))
        driver = self.drivers.pop(epoch)
        if how == "frozen":
            running = [query for query, phase in driver.running.items() if phase == "computed"]
            self.frozen += [(epoch, query, self.checkpoints[epoch, query].done) for query in running]
        if how == "author" and epoch != 1:
            self.ended[epoch] = Ended(1, "author", 0.0, "q", "no such column")

    @precondition(lambda self: self.frozen)
    @rule()
    def thaw(self) -> None:
        """A driver that nobody believes to be alive records its batch."""
        self.record(*self.frozen.pop())

    def go_on(self, epoch: int, query: str, count: int) -> None:
        driver = self.drivers[epoch]
        self.ended.pop(epoch, None)
        if not driver.started and self.is_carried(epoch):
            self.await_state(epoch, driver)
        elif not driver.started:
            self.start(epoch, driver)
        elif driver.running.get(query) == "computed":
            self.finish(epoch, query, driver)
        elif driver.running.pop(query, "") == "recorded":
            self.checkpoints[epoch, query].done += 1
        elif not driver.halted:
            self.plan(epoch, query, driver, count)
        elif not driver.running:
            del self.drivers[epoch]

    def await_state(self, epoch: int, driver: Driver) -> None:
        if driver.halted:
            del self.drivers[epoch]
            return
        driver.vetted = True
        if self.is_handed(epoch):
            self.start(epoch, driver)

    def is_carried(self, epoch: int) -> bool:
        """Whether it has not taken over yet the state that is handed on to it."""
        told = self.story.epochs.get(epoch)
        return told is not None and told.record.channel == "carry" and told.record.x_after > 0 and told.begun is None

    def is_handed(self, epoch: int) -> bool:
        """Whether it may be taken over; then it is all on disk."""
        told = self.story.epochs[epoch]
        old = self.story.epochs.get(told.record.x_after)
        if told.aborted is not None or old is None or not old.drained or old.record.epoch in self.drivers:
            return told.aborted is not None
        for query, each in old.queries.items():
            assert self.checkpoints[old.record.epoch, query].done == each.last.batch + 1, "it is not on disk"
        return True

    def start(self, epoch: int, driver: Driver) -> None:
        record = number((make_started(epoch),), self.story.last + 1)[0]
        if epoch not in self.story.epochs or find_broken_rule(self.story, record):
            del self.drivers[epoch]
            return
        self.append(record)
        driver.started = True
        for query in READS:
            self.checkpoints.setdefault((epoch, query), Checkpoint())

    def plan(self, epoch: int, query: str, driver: Driver, count: int) -> None:
        checkpoint = self.checkpoints[epoch, query]
        if checkpoint.done == len(checkpoint.ends):
            begin = self.find_begin(epoch, query, checkpoint.done)
            checkpoint.ends.append({source: min(at + count, COUNT) for source, at in begin.items()})
        driver.running[query] = "computed"

    def finish(self, epoch: int, query: str, driver: Driver) -> None:
        if self.record(epoch, query, self.checkpoints[epoch, query].done):
            driver.running[query] = "recorded"
        else:
            # The batches that its other queries are at go on.
            driver.halted = True
            del driver.running[query]

    # --- rows

    def find_start(self, epoch: int, query: str) -> Offsets:
        """Where a query of the epoch begins to read."""
        record = self.story.epochs[epoch].record
        if record.channel == "carry":
            return self.hand_over(epoch)[query]
        start = record.start or {}
        return {source: start.get(f"{query}/{source}", start.get(source)) or 0 for source in READS[query]}

    def hand_over(self, epoch: int) -> dict[str, Offsets]:
        """Where the state that it carries on ends: with the last batch that was recorded."""
        if epoch not in self.handed:
            old = self.story.epochs[self.story.epochs[epoch].record.x_after] if self.story.epochs[epoch].into else None
            self.handed[epoch] = {
                query: self.checkpoints[old.record.epoch, query].ends[old.queries[query].last.batch]
                if old and query in old.queries
                else (self.find_start(old.record.epoch, query) if old else dict.fromkeys(READS[query], 0))
                for query in READS
            }
        return self.handed[epoch]

    def find_begin(self, epoch: int, query: str, batch: int) -> Offsets:
        return self.checkpoints[epoch, query].ends[batch - 1] if batch else self.find_start(epoch, query)

    def has_row(self, epoch: int, query: str, source: str, at: int) -> bool:
        """Whether the row is in the graph's windows once it has read so far, by itself or by the state it was given."""
        record = self.story.epochs[epoch].record
        if at >= self.find_start(epoch, query)[source]:
            return self.rows[source][at] >= (record.x_rows_from or 0.0)
        return record.channel == "carry" and record.x_after > 0 and self.has_row(record.x_after, query, source, at)

    def list_rows(self, epoch: int, query: str, upto: Offsets) -> Iterator[float]:
        for source, end in upto.items():
            yield from (self.rows[source][at] for at in range(end) if self.has_row(epoch, query, source, at))

    def find_newest(self, epoch: int, query: str, batch: int) -> dict[str, float | None]:
        begin = self.find_begin(epoch, query, batch)
        return {source: max(self.list_rows(epoch, query, {source: end}), default=None) for source, end in begin.items()}

    def find_watermark(self, epoch: int, query: str, batch: int) -> float:
        """That the batch begins with. Sources only grow, so the last one is the greatest."""
        newest = [each for each in self.find_newest(epoch, query, batch).values() if each is not None]
        return max(min(newest) - LATENESS, 0.0) if len(newest) == len(READS[query]) else 0.0

    def compute(self, epoch: int, query: str, batch: int) -> tuple[Batch, list[float]]:
        watermark = self.find_watermark(epoch, query, batch)
        before = self.find_watermark(epoch, query, batch - 1) if batch else -1.0
        ends = {
            find_end(row, WINDOW) for row in self.list_rows(epoch, query, self.checkpoints[epoch, query].ends[batch])
        }
        windows = sorted(end for end in ends if before < end <= watermark)
        named = [round_up(end, self.story.epochs[epoch].record.x_window) for end in windows]
        made = make_batch(
            epoch, batch, named[0] if named else None, named[-1] if named else None, query=query,
            rows=len(windows), watermark=watermark, x_begin=self.find_begin(epoch, query, batch),
            x_newest=self.find_newest(epoch, query, batch),
        )  # fmt: skip
        return made, windows

    def record(self, epoch: int, query: str, batch: int) -> bool:
        """What the sink does; False: the batch may not be committed."""
        if epoch not in self.story.epochs:
            return False
        made, windows = self.compute(epoch, query, batch)
        judged = judge_batch(self.story, epoch, query, batch, made.first, made.last)
        if judged.kind in ("repeated", "refused"):
            return judged.kind == "repeated"
        kept = windows if judged.kind == "all" else []
        if judged.kind == "part":
            kept = [end for end in windows if end > (judged.after or 0.0) and end <= (judged.upto or 1e9)]
        self.append(replace(made, kept=len(kept)))
        self.put_rows(epoch, query, kept)
        return True

    def put_rows(self, epoch: int, query: str, windows: list[float]) -> None:
        for window in windows:
            assert (query, window) not in self.table, "it is in the table already"
            for source in READS[query]:
                places = [at for at, row in enumerate(self.rows[source]) if find_end(row, WINDOW) == window]
                assert all(self.has_row(epoch, query, source, at) for at in places), "rows of it are missing"
            self.table[query, window] = epoch

    @invariant()
    def no_window_is_left_out(self) -> None:
        """The owner has emitted what is its own, as far as its watermark has come."""
        for epoch, told in self.story.epochs.items():
            for query, each in told.queries.items():
                if told.current and each.last.watermark > 0 and told.record.channel != "carry":
                    self.check_emitted(epoch, query, each.last.watermark)

    def check_emitted(self, epoch: int, query: str, watermark: float) -> None:
        told = self.story.epochs[epoch]
        after = told.into.x_upto.get(query, told.into.upto) if told.into else 0.0
        upto = told.out.x_upto.get(query, told.out.upto) if told.out else 1e9
        ends = {find_end(row, WINDOW) for source in READS[query] for row in self.rows[source]}
        due = {end for end in ends if after < end <= min(upto, watermark)}
        assert {end for end in due if (query, end) not in self.table} == set()

    def teardown(self) -> None:
        """Once nothing is lost any more and nobody orders anything, the flow comes to rest, with every window."""
        self.frozen, self.ended = [], {}
        for _ in range(50):
            self.look()
            self.act(0, asks=False)
            self.run_all(5)
        assert not any("stop" in self.orders.get(each.record.epoch, {}) for each in self.list_living())
        # What was asked for last may have been given up: that is not asked for again. What was ordered stays there.
        self.ask("replay", "beside", "auto", True, WINDOW)
        self.come_to_rest()
        if not self.drivers:
            # It was stopped in the middle of a window, and is another code's only behind that: it goes on until then.
            assert self.story.old is not None
            assert list_open(self.story.old), tell_story(self.story)
            self.take_back()
            self.come_to_rest()
        self.check_end()
        assert check_records(self.records, self.compacted).violations == ()

    def come_to_rest(self) -> None:
        quiet = 0
        for _ in range(1000):
            before = self.story.last, len(self.drivers)
            self.look()
            self.act(0, asks=True)
            self.run_all(5)
            quiet = quiet + 1 if before == (self.story.last, len(self.drivers)) else 0
            if quiet == 10:
                return

    def list_living(self) -> list[EpochStory]:
        return [each for each in (self.story.old, self.story.new) if each is not None and can_stop(each)]

    def run_all(self, count: int) -> None:
        """A line of each query that has rows left."""
        for epoch, query in [(epoch, query) for epoch in sorted(self.drivers) for query in READS]:
            if epoch in self.drivers and not self.is_at_end(epoch, query):
                self.go_on(epoch, query, count)

    def is_at_end(self, epoch: int, query: str) -> bool:
        """Whether it has read all rows, and executed one batch more."""
        driver, checkpoint = self.drivers[epoch], self.checkpoints.get((epoch, query))
        if not driver.started or driver.halted or driver.running or checkpoint is None or len(checkpoint.ends) < 2:
            return False
        return all(end == COUNT for each in checkpoint.ends[-2:] for end in each.values())

    def check_end(self) -> None:
        assert self.drivers, tell_story(self.story)
        lowest = {
            query: min(self.story.epochs[epoch].queries[query].last.watermark for epoch in self.drivers)
            for query in READS
        }
        for query, watermark in lowest.items():
            ends = {find_end(row, WINDOW) for source in READS[query] for row in self.rows[source]}
            missing = {end for end in ends if end <= watermark and (query, end) not in self.table}
            assert missing == set(), tell_story(self.story)


TestSwitches = Switches.TestCase
TestSwitches.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
