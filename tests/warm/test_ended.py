"""What is kept of applications that have ended: without Spark."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from airflow_dagsched.launch.warm.about import ENDED, About
from airflow_dagsched.launch.warm.identity import Wanted
from airflow_dagsched.launch.warm.serving import Serving
from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.spark.warm_driver.host import LONGEST_REASON, MOST_ENDS, note_end

HOSTS, ENDS = 8, 12
ABOUT = About("dag.flow", "spark_default", 0.0, Wanted("key", "code", {}), Terms(60.0, 5), "", "")


def note_ends(folder: Path, host: int, ends: int) -> None:
    for number in range(ends):
        note_end(folder / f"{host}-{number}", ABOUT, Serving("ending", 0.0, 1, reason="it was told to end"))


def read_names(folder: Path) -> list[str]:
    """Of those that are remembered."""
    return [line.split()[2] for line in (folder / ENDED).read_text("utf-8").splitlines()]


def test_all_that_end_at_once_are_remembered(tmp_path: Path) -> None:
    processes = multiprocessing.get_context("fork")
    hosts = [processes.Process(target=note_ends, args=(tmp_path, host, ENDS)) for host in range(HOSTS)]
    for each in hosts:
        each.start()
    for each in hosts:
        each.join()
    assert sorted(read_names(tmp_path)) == sorted(f"{host}-{number}" for host in range(HOSTS) for number in range(ENDS))


def test_the_last_ones_are_remembered(tmp_path: Path) -> None:
    note_ends(tmp_path, 0, MOST_ENDS + 7)
    assert read_names(tmp_path) == [f"0-{number}" for number in range(7, MOST_ENDS + 7)]


@pytest.mark.parametrize(
    "reason", ["one\nof two lines", "one  of two lines\n", "one of two lines\n" + "at Java\n" * 999]
)
def test_each_is_a_line(tmp_path: Path, reason: str) -> None:
    note_end(tmp_path / "a", ABOUT, Serving("ending", 0.0, 1, reason=reason))
    (line,) = (tmp_path / ENDED).read_text("utf-8").splitlines()
    assert "a dag.flow: 1 runs; one of two lines" in line
    assert len(line) < LONGEST_REASON + 50
