"""Commit records: one writer a generation, the newest counts."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.outputs.commits import CommitLog, CommitRefused, Committed

FIRST = Committed(
    output="dag/flow/step/",
    interval="2013-01-01",
    generation=1,
    fingerprint="f",
    run_id="run 1",
    path="/data/x",
    table=None,
    rows=None,
    bytes=3,
    schema="{}",
    partitions=("day=1", "day=2"),
    format="parquet",
)


def log_in(folder: Path | str) -> CommitLog:
    """The log in a work dir."""
    return CommitLog(LocalStore(), str(folder))


def test_the_newest_commit_is_the_output(tmp_path: Path):
    """Of all runs, and of one; it comes back as it was."""
    log = log_in(tmp_path)
    second = replace(FIRST, generation=2, run_id="run 2")
    log.commit_record(FIRST)
    log.commit_record(second)
    assert log.find_latest(FIRST.output, FIRST.interval) == second
    assert log.find_of_task(FIRST.output, FIRST.interval, "run 1", "") == FIRST
    assert log.find_of_task(FIRST.output, FIRST.interval, "run 3", "") is None
    assert log.find_latest(FIRST.output, "2013-01-02") is None
    assert log.get_last_generation(FIRST.output, FIRST.interval) == 2


def test_the_newest_commit_of_a_writer(tmp_path: Path):
    """Of several of one table; a record that does not say who wrote it may be anyone's."""
    log = log_in(tmp_path)
    old, a, b = (replace(FIRST, generation=n + 1, writer=writer) for n, writer in enumerate(("", "a", "b")))
    for each in (old, a, b):
        log.commit_record(each)
    found = [log.find_latest(FIRST.output, FIRST.interval, writer) for writer in ("a", "b", "c", "")]
    assert found == [a, b, old, b]
    assert log.find_earlier(FIRST.output, FIRST.interval, "a") == (a, True)


def test_what_another_writer_wrote_over(tmp_path: Path):
    """Not what was appended, and not what came before."""
    log = log_in(tmp_path)
    a, b = replace(FIRST, writer="a"), replace(FIRST, writer="b", generation=2, partitions=("day=2", "day=3"))
    for each in (a, b, replace(b, generation=3, partitions=("day=4",), mode="append")):
        log.commit_record(each)
    assert [log.find_written_over(each) for each in (a, b)] == [{"day=2", "day=3"}, set()]


def test_a_taken_generation_is_refused(tmp_path: Path):
    """The message says that nothing changed, and nothing has."""
    log = log_in(tmp_path)
    log.commit_record(FIRST)
    with pytest.raises(CommitRefused, match=r"generation 1 is not committed.*Nothing was changed: a retry"):
        log.commit_record(replace(FIRST, run_id="run 2"))
    assert log.find_latest(FIRST.output, FIRST.interval) == FIRST


def test_a_torn_record_is_no_commit(tmp_path: Path):
    """But its generation is gone: its writer may yet complete it."""
    log = log_in(tmp_path)
    log.commit_record(FIRST)
    LocalStore().write_text(log.get_record_path(FIRST.output, FIRST.interval, 2), '{"output": "da')
    assert log.find_latest(FIRST.output, FIRST.interval) == FIRST
    assert log.get_last_generation(FIRST.output, FIRST.interval) == 2


def test_a_record_is_refused_unless_it_is_of_these_files(tmp_path: Path):
    """Under the number that one writer wanted another may have committed; and what is refused is never made."""
    log = log_in(tmp_path)
    log.commit_record(replace(FIRST, tag="mine"))
    made, free = (log.get_record_path(FIRST.output, FIRST.interval, number) for number in (1, 2))
    assert [log.refuse(path, "mine", LocalStore()) for path in (made, free)] == [False, True]
    assert log.refuse(made, "another's", LocalStore())
    with pytest.raises(CommitRefused):
        log.commit_record(replace(FIRST, generation=2))


def _commit(folder: str, run_id: str) -> bool:
    try:
        log_in(folder).commit_record(replace(FIRST, run_id=run_id))
    except CommitRefused:
        return False
    return True


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_of_two_writers_of_a_generation_one_wins(pool: type, tmp_path: Path):
    """Whoever it is: the record is that writer's."""
    processes = {"mp_context": get_context("spawn")} if pool is ProcessPoolExecutor else {}
    with pool(2, **processes) as executor:
        for turn in range(10):
            folder = f"{tmp_path}/{turn}"
            won = list(executor.map(_commit, [folder] * 2, "ab"))
            assert sorted(won) == [False, True]
            latest = log_in(folder).find_latest(FIRST.output, FIRST.interval)
            assert latest is not None
            assert latest.run_id == "ab"[won.index(True)]
