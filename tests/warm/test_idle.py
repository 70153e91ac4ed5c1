"""What an application that waits knows of others, and of its cluster: without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_dagsched.launch.warm.about import IDLE
from airflow_dagsched.process_names import name_process
from airflow_dagsched.spark.warm_driver.idle_executors import NO_LIMIT, choose_target
from airflow_dagsched.spark.warm_driver.idle_mark import IdleMark


def begin_to_wait(folder: Path, at_s: int, process: str | None = None) -> IdleMark:
    """An application that has waited since then."""
    folder.mkdir()
    mark = IdleMark(folder)
    mark.put()
    if process is not None:
        (folder / IDLE).write_text(process)
    os.utime(folder / IDLE, (at_s, at_s))
    return mark


def test_it_counts_those_that_have_waited_for_less_long(tmp_path: Path) -> None:
    marks = [begin_to_wait(tmp_path / str(at), at) for at in (30, 10, 20)]
    (tmp_path / "ended.log").touch()
    (tmp_path / "runs").mkdir()
    assert [mark.count_later() for mark in marks] == [0, 2, 1]
    marks[0].remove()
    assert [mark.count_later() for mark in marks] == [0, 1, 0]


def test_one_that_was_killed_does_not_count(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as killed:
        name = name_process(killed.pid)
        killed.kill()
    mine = begin_to_wait(tmp_path / "mine", 10)
    begin_to_wait(tmp_path / "other", 20, name)
    assert mine.count_later() == 0


def test_it_waits_since_it_began_to(tmp_path: Path) -> None:
    mark = begin_to_wait(tmp_path / "mine", 10)
    mark.put()
    assert (tmp_path / "mine" / IDLE).stat().st_mtime == 10


@pytest.mark.parametrize(
    ("master", "conf", "sizes", "target"),
    [
        ("spark://a:7077", {}, {}, NO_LIMIT),
        ("spark://a:7077", {"spark.executor.cores": "2"}, {"spark.executor.instances": 3.0}, NO_LIMIT),
        ("spark://a:7077", {"spark.executor.cores": "2", "spark.cores.max": "8"}, {"spark.cores.max": 4.0}, 2),
        ("spark://a:7077", {"spark.cores.max": "8"}, {"spark.cores.max": 4.0}, NO_LIMIT),
        ("yarn", {}, {}, 2),
        ("yarn", {"spark.executor.instances": "4"}, {}, 4),
        ("yarn", {"spark.executor.instances": "4"}, {"spark.executor.instances": 3.0, "spark.cores.max": 1.0}, 3),
    ],
)
def test_it_asks_for_as_many_executors_as_the_run_does(
    master: str, conf: dict[str, str], sizes: dict[str, float], target: int
) -> None:
    assert choose_target(master, conf, sizes) == target
