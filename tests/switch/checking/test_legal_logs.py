"""What the protocol writes is found to be right: two heads, two implementations, one opinion."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given

from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.log.compaction import compact_log
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.records import Batch, Fence, Record
from airflow_dagsched.switch.story import owned
from tests.switch.checked import check_records
from tests.switch.drawn import (
    FIRST,
    WINDOW,
    make_batch,
    make_current,
    make_drained,
    make_epoch,
    make_fence,
    make_started,
    make_stopped,
    number,
)
from tests.switch.model import Mode, Model, World, compute_batch, explore
from tests.switch.test_flow_log import add
from tests.switch.test_judgement import Told, logs

Name = tuple[object, ...]


@dataclass
class LoggedModel(Model):
    """With a log of each story there is."""

    logs: dict[Name, tuple[Record, ...]] = field(default_factory=dict)

    def begin(self) -> World:
        world = super().begin()
        self.logs[world.story] = number((FIRST[0], FIRST[1], compute_batch(1, 0, 0, 0.0), FIRST[3]))
        return world

    def append(self, world: World, record: Record) -> World:
        after = super().append(world, record)
        before = self.logs[world.story]
        self.logs.setdefault(after.story, (*before, *number((record,), len(before) + 1)))
        return after


@pytest.mark.parametrize(("mode", "length", "least"), [("replay", 3, 100), ("sequential", 4, 100), ("carry", 5, 50)])
def test_all_logs_of_a_small_world_are_right(mode: Mode, length: int, least: int):
    model = LoggedModel(mode, length)
    explore(model, executors=1, crashes=1)
    assert len(model.logs) == len(model.stories) >= least
    assert {violation for log in model.logs.values() for violation in check_records(log).violations} == set()


def test_a_fence_that_is_lowered_is_found_in_every_log():
    """Where a window had been emitted up to it."""
    model = LoggedModel("replay", 3)
    explore(model, executors=1, crashes=0)
    needed = [log for log in model.logs.values() if any(emits_up_to_fence(log, each) for each in log)]
    assert needed
    for log in needed:
        lowered = [replace(each, upto=each.upto - WINDOW) if isinstance(each, Fence) else each for each in log]
        assert "fence too early" in {each.rule for each in check_records(lowered).violations}


def emits_up_to_fence(log: tuple[Record, ...], fence: Record) -> bool:
    batches = [each for each in log if isinstance(each, Batch) and each.n < fence.n]
    return isinstance(fence, Fence) and fence.upto in {each.last for each in batches}


@given(logs())
def test_drawn_logs_are_right_and_windows_whose_the_protocol_says(told: Told):
    checked = check_records(told.records)
    assert checked.violations == ()
    for each in checked.owned:
        after, upto = owned(told.story, each.epoch, "out")
        assert each.after == (float("-inf") if after is None else after)
        assert each.upto == (float("inf") if upto is None else upto)


def test_a_log_that_is_compacted_again_and_again_stays_right(tmp_path: Path):
    log = FlowLog(tmp_path)
    add(log, *FIRST)
    for epoch in range(1, 25):
        upto = 20.0 * epoch
        batches = log.story.epochs[epoch].queries["out"].last.batch
        add(
            log,
            make_epoch(epoch + 1),
            make_started(epoch + 1),
            make_batch(epoch + 1, 0),
            make_batch(epoch, batches + 1, upto, upto, x_newest={"in": upto}),
            make_fence(epoch, upto),
            make_batch(epoch, batches + 2, watermark=upto, x_newest={"in": upto}),
            make_drained(epoch),
            make_stopped(epoch),
            make_current(epoch + 1),
            make_batch(epoch + 1, 1, upto + 10, upto + 10),
        )
        compact_log(tmp_path, 5)
        assert check_log(tmp_path).violations == ()
    assert list(tmp_path.glob("snapshot-*.json"))
    assert [each.upto for each in check_log(tmp_path).owned][-2:] == [480, float("inf")]
