"""One sequence of records, whoever writes, compacts, or stands still meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_dagsched.switch.fold import IllegalTransition
from airflow_dagsched.switch.log.compaction import compact_log
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.numbered_files import list_numbers, name_record_file, name_snapshot_file
from airflow_dagsched.switch.records import GarbledLog, Record, encode_record
from airflow_dagsched.switch.story import Story
from tests.switch.drawn import (
    FIRST,
    make_aborted,
    make_batch,
    make_current,
    make_epoch,
    make_stopped,
    name_files,
    number,
    tell,
)

WRITER = """
import sys
from pathlib import Path
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.compaction import compact_log
from tests.switch.drawn import make_batch
from dataclasses import replace

folder, query, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
log = FlowLog(folder)
for batch in range(count):
    def make(story, n, at):
        # As a sink asks: who stands still right behind its record may find it in a snapshot.
        known = story.epochs[1].queries.get(query)
        is_recorded = known is not None and known.last.batch >= batch
        return None if is_recorded else replace(make_batch(1, batch, query=query), n=n, at=at)
    log.append(make)
    if batch % 40 == 20:
        compact_log(folder, 10)
    if batch == 20:
        print("half way", flush=True)
"""
"""One process of several: adds the batches of one query, and compacts beside the others."""


def add(log: FlowLog, *records: Record) -> None:
    for each in records:
        log.append(lambda story, n, at, each=each: name_files(number((each,), n)[0]))


def fill(folder: Path, batches: int) -> FlowLog:
    """A log whose first epoch has so many batches of its query."""
    folder.mkdir(exist_ok=True)
    for each in number((*FIRST, *(make_batch(1, batch) for batch in range(1, batches)))):
        name_record_file(folder, each.n).write_text(encode_record(each))
    log = FlowLog(folder)
    log.read()
    return log


def test_another_reads_what_one_wrote(tmp_path: Path):
    one, other = FlowLog(tmp_path / "log"), FlowLog(tmp_path / "log")
    assert other.read() == ()
    add(one, *FIRST)
    assert [each.n for each in other.read()] == [1, 2, 3, 4]
    assert other.story == one.story == tell(*FIRST)
    assert other.read() == ()
    assert sorted(each.name for each in (tmp_path / "log").iterdir()) == [f"000000000{n}.json" for n in (1, 2, 3, 4)]


def test_a_record_is_judged_again_when_another_came_before_it(tmp_path: Path):
    one, other = FlowLog(tmp_path), FlowLog(tmp_path)
    add(one, *FIRST)
    asked = []

    def make(story: Story, n: int, at: float) -> Record | None:
        asked.append(story.last)
        if len(asked) == 1:
            add(other, make_batch(1, 1))
        return number((make_batch(1, story.epochs[1].queries["out"].last.batch + 1),), n)[0]

    made = one.append(make)
    assert asked == [4, 5]
    assert made is not None
    assert made.n == 6


def test_who_wants_no_record_any_more_makes_none(tmp_path: Path):
    log = fill(tmp_path, 1)
    assert log.append(lambda story, n, at: None) is None
    assert list_numbers(tmp_path).records == (1, 2, 3, 4)


def test_a_record_that_may_not_come_is_not_written(tmp_path: Path):
    log = fill(tmp_path, 1)
    before = log.story
    with pytest.raises(IllegalTransition, match="not in state 'steady'"):
        add(log, make_aborted(2))
    assert log.story == before
    assert list_numbers(tmp_path).records == (1, 2, 3, 4)


def test_the_time_is_the_clocks(tmp_path: Path):
    log = FlowLog(tmp_path, clock=lambda: 42.5)
    record = log.append(lambda story, n, at: make_epoch(1, n=n, at=at))
    assert record is not None
    assert record.at == 42.5


def test_a_clock_that_is_set_back_changes_the_order_of_no_times(tmp_path: Path):
    """Whoever wrote the record before; but for a clock that was wrong by days, as else no time-out would end."""
    clock = [10_000.0]
    log, other = (FlowLog(tmp_path, clock=lambda: clock[0]) for _ in range(2))
    for each in FIRST:
        log.append(lambda story, n, at, each=each: replace(each, n=n, at=at))
    for now, batch, at in ((6400.0, 1, 10_000.0), (10_001.0, 2, 10_001.0), (10_001.0 - 2 * 86_400, 3, -162_799.0)):
        clock[0] = now
        other.append(lambda story, n, at, batch=batch: replace(make_batch(1, batch), n=n, at=at))
        assert log.read()[-1].at == at
    compact_log(tmp_path, 1)
    clock[0] = 6400.0
    other = FlowLog(tmp_path, clock=lambda: clock[0])
    made = other.append(lambda story, n, at: replace(make_batch(1, 4), n=n, at=at))
    assert made is not None
    assert made.at == 10_001.0


# --- compaction


def test_a_compacted_log_tells_the_same_story(tmp_path: Path):
    log = fill(tmp_path, 500)
    compact_log(tmp_path, 100)
    assert list_numbers(tmp_path) == (tuple(range(403, 504)), (403,))
    fresh = FlowLog(tmp_path)
    fresh.read()
    assert fresh.story == log.story
    assert log.read() == ()
    add(log, make_batch(1, 500))
    assert [each.n for each in fresh.read()] == [504]


def test_a_log_is_compacted_when_it_has_grown(tmp_path: Path):
    log = fill(tmp_path, 490)
    log.compact()
    assert list_numbers(tmp_path).snapshots == ()
    add(log, *(make_batch(1, each) for each in range(490, 510)))
    log.compact()
    log.compact()
    assert list_numbers(tmp_path).snapshots == (313,)


def test_a_log_stays_small(tmp_path: Path):
    """Also where a switch is long ago."""
    log = fill(tmp_path, 1)
    for round_ in range(6):
        add(log, *(make_batch(1, each) for each in range(1 + 20 * round_, 21 + 20 * round_)))
        compact_log(tmp_path, 10)
    assert len(list(tmp_path.iterdir())) == 12
    snapshot = max(tmp_path.glob("snapshot-*"))
    assert len(json.loads(snapshot.read_text())) < 10


def test_fields_of_others_outlive_a_compaction(tmp_path: Path):
    fill(tmp_path, 50)
    path = name_record_file(tmp_path, 1)
    path.write_text(json.dumps({**json.loads(path.read_text()), "x_theirs": {"a": 1}}))
    compact_log(tmp_path, 10)
    assert json.loads(min(tmp_path.glob("snapshot-*")).read_text())[0]["x_theirs"] == {"a": 1}


def test_a_compaction_that_died_is_finished_by_the_next(tmp_path: Path):
    """After the snapshot, before any record went; and after some went."""
    log = fill(tmp_path, 100)
    texts = {each.name: each.read_text() for each in tmp_path.iterdir()}
    compact_log(tmp_path, 20)
    for name in list(texts)[::2]:
        (tmp_path / name).write_text(texts[name])
    fresh = FlowLog(tmp_path)
    fresh.read()
    assert fresh.story == log.story
    compact_log(tmp_path, 10)
    assert list_numbers(tmp_path) == (tuple(range(93, 104)), (93,))


def test_a_writer_that_stood_still_over_a_compaction_makes_nothing_under_a_freed_number(tmp_path: Path):
    still, other = fill(tmp_path, 20), FlowLog(tmp_path)
    asked = []

    def make(story: Story, n: int, at: float) -> Record | None:
        asked.append((n, story.epochs[1].queries["out"].last.batch))
        if len(asked) == 1:
            add(other, *(make_batch(1, each) for each in range(20, 120)))
            compact_log(tmp_path, 10)
            assert not name_record_file(tmp_path, n).exists()
        return number((make_batch(1, story.epochs[1].queries["out"].last.batch + 1),), n)[0]

    made = still.append(make)
    assert asked == [(24, 19), (124, 119)]
    assert made is not None
    assert list_numbers(tmp_path).records == tuple(range(113, 125))
    assert still.story == go_to_end(tmp_path)


def go_to_end(folder: Path) -> Story:
    fresh = FlowLog(folder)
    fresh.read()
    return fresh.story


def test_a_reader_that_stood_still_reads_no_record_of_a_freed_number(tmp_path: Path):
    """Which a writer made that stood still, too, and died before it took it back."""
    still, other = fill(tmp_path, 20), FlowLog(tmp_path)
    stray = number((make_batch(1, 20, first=990.0, last=990.0),), 24)[0]
    add(other, *(make_batch(1, each) for each in range(20, 120)))
    compact_log(tmp_path, 10)
    for path in (name_record_file(tmp_path, 23), name_record_file(tmp_path, 24)):
        path.write_text(encode_record(stray))
    assert 24 not in [each.n for each in still.read()]
    assert still.story == go_to_end(tmp_path)
    assert still.story.epochs[1].newest_window is None


def test_a_reader_is_told_nothing_twice_over_a_compaction(tmp_path: Path):
    """And not what no one needs any more."""
    still, other = fill(tmp_path, 20), FlowLog(tmp_path)
    add(other, *(make_batch(1, each) for each in range(20, 120)), make_stopped(1))
    compact_log(tmp_path, 10)
    numbers = [each.n for each in still.read()]
    assert numbers == sorted(set(numbers))
    assert min(numbers) > 23
    assert numbers[-1] == 124


# --- what is no log


def test_a_torn_record_is_named(tmp_path: Path):
    fill(tmp_path, 5)
    path = name_record_file(tmp_path, 6)
    path.write_text(path.read_text()[:-1])
    with pytest.raises(GarbledLog) as caught:
        FlowLog(tmp_path).read()
    assert caught.value.path == str(path)


def test_a_record_under_another_number_is_refused(tmp_path: Path):
    fill(tmp_path, 5)
    name_record_file(tmp_path, 9).write_text(name_record_file(tmp_path, 5).read_text())
    with pytest.raises(GarbledLog, match="holds record 5"):
        FlowLog(tmp_path).read()


def test_a_missing_number_is_told(tmp_path: Path):
    fill(tmp_path, 20)
    name_record_file(tmp_path, 9).unlink()
    with pytest.raises(GarbledLog, match=r"0000000009\.json: is missing"):
        FlowLog(tmp_path).read()


def test_a_log_that_was_removed_is_told(tmp_path: Path):
    log = fill(tmp_path, 5)
    for each in tmp_path.iterdir():
        each.unlink()
    with pytest.raises(GarbledLog, match="no snapshot has it"):
        log.read()


def test_a_torn_snapshot_is_named(tmp_path: Path):
    fill(tmp_path, 50)
    compact_log(tmp_path, 10)
    (path,) = tmp_path.glob("snapshot-*")
    path.write_text("{}")
    with pytest.raises(GarbledLog) as caught:
        FlowLog(tmp_path).read()
    assert caught.value.path == str(path)


@pytest.mark.parametrize("is_stray", [False, True])
def test_a_snapshot_without_its_own_record_is_told_by_the_name_of_that(tmp_path: Path, is_stray: bool):
    """Also one that a log which ends earlier never had: either way nobody can read on from it."""
    fill(tmp_path, 50)
    compact_log(tmp_path, 10)
    (path,) = tmp_path.glob("snapshot-*")
    number = int(path.stem.removeprefix("snapshot-"))
    if is_stray:
        number += 99
        name_snapshot_file(tmp_path, number).write_text(path.read_text())
    else:
        name_record_file(tmp_path, number).unlink()
    with pytest.raises(GarbledLog, match=rf"0{number}\.json: is missing, and its snapshot is there"):
        FlowLog(tmp_path).read()


def test_a_snapshot_that_lacks_an_epoch_is_garbled(tmp_path: Path):
    """A person has to mend it: whoever follows the stream is to end by it, as by any torn file."""
    fill(tmp_path, 50)
    compact_log(tmp_path, 10)
    (path,) = tmp_path.glob("snapshot-*")
    _, *rest = json.loads(path.read_text())
    path.write_text(json.dumps(rest))
    for read in (FlowLog(tmp_path).read, lambda: compact_log(tmp_path, 2)):
        with pytest.raises(GarbledLog, match="and none that asks for that epoch") as caught:
            read()
        assert caught.value.path == str(path)


# --- processes


def start_writer(folder: Path, query: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), query, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def end_writer(writer: subprocess.Popen[str]) -> None:
    writer.kill()
    writer.communicate()


def test_processes_that_write_and_compact_at_once_lose_and_repeat_nothing(tmp_path: Path):
    """One of them stands still while the others go on and compact what it was about to write."""
    queries, count = ("a", "b", "c", "d"), 120
    add(FlowLog(tmp_path), make_epoch(1, x_queries=queries), *FIRST[1:2], make_batch(1, 0, query="e"), make_current(1))
    writers = [start_writer(tmp_path, query, count) for query in queries]
    still, *others = writers
    try:
        assert still.stdout is not None
        assert still.stdout.readline() == "half way\n"
        os.kill(still.pid, signal.SIGSTOP)
        assert [each.wait(timeout=120) for each in others] == [0, 0, 0]
        compact_log(tmp_path, 10)
        os.kill(still.pid, signal.SIGCONT)
        assert still.wait(timeout=120) == 0
    finally:
        for each in writers:
            end_writer(each)
    story = go_to_end(tmp_path)
    assert story.last == 4 + len(queries) * count
    assert {name: query.last.batch for name, query in story.epochs[1].queries.items()} == {
        **dict.fromkeys(queries, count - 1),
        "e": 0,
    }
