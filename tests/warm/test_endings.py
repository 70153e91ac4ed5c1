"""What ends an application that serves its runs well: time and runs apart, which ``test_serving`` has."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.warm.about import ENDED, OUTPUT
from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.process_names import name_process
from tests.warm.kit import Begun, Lab, flow_of, list_processes, open_lab, sleeping_process, wait_until
from tests.warm.test_serving import find_host, rows, total

pytestmark = [pytest.mark.spark, pytest.mark.warm]

MEGABYTE = 1 << 20


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """Airflow's."""
    with sleeping_process() as started:
        yield started


def run_once(lab: Lab) -> None:
    ran = lab.run(flow_of(rows, total, dated=True))
    assert ran.code == 0, ran.output
    wait_until(lambda: (found := lab.find_status()) is not None and found.state == "idle", "it waits")


def read_ends(lab: Lab) -> str:
    """Why applications ended."""
    return (lab.warm / ENDED).read_text("utf-8")


def test_it_ends_when_memory_is_not_given_back(tmp_path: Path) -> None:
    """A step puts 200 MB where Java keeps it for as long as it runs: 29% of its heap."""

    def leave(spark: Any) -> None:
        for number in range(20):
            spark.sparkContext._jvm.java.security.Security.setProperty(f"left.{number}", "x" * (10 * MEGABYTE))

    with open_lab(tmp_path, terms=Terms(60.0, 50, most_heap=0.3)) as lab:
        run_once(lab)
        left = lab.run(flow_of(leave, dated=True))
        assert (left.code, left.number) == (0, 2), left.output
        wait_until(lambda: not lab.list_folders(), "it ends")
        assert "MiB in use after the run" in read_ends(lab)


def test_it_ends_when_memory_beside_the_heap_is_not_given_back(tmp_path: Path) -> None:
    """A step takes 1.6 GB as libraries do that are no Java."""

    def leave(spark: Any) -> None:
        memory = spark.sparkContext._jvm.org.apache.spark.unsafe.Platform
        for _ in range(16):
            memory.setMemory(memory.allocateMemory(100 * MEGABYTE), 1, 100 * MEGABYTE)

    with open_lab(tmp_path) as lab:
        run_once(lab)
        left = lab.run(flow_of(leave, dated=True))
        assert (left.code, left.number) == (0, 2), left.output
        wait_until(lambda: not lab.list_folders(), "it ends")
        assert "beside all of its heap" in read_ends(lab)


def test_it_ends_when_airflows_worker_is_gone(tmp_path: Path, worker: subprocess.Popen[bytes]) -> None:
    with open_lab(tmp_path, owner=name_process(worker.pid)) as lab:
        run_once(lab)
        worker.kill()
        wait_until(lambda: not lab.list_folders(), "it ends")
        assert "Airflow's worker is gone" in read_ends(lab)


def test_its_run_is_brought_to_its_end_when_airflows_worker_is_gone(
    tmp_path: Path, worker: subprocess.Popen[bytes]
) -> None:
    """As Airflow lets its tasks end when a worker is told to stop."""
    go_on = tmp_path / "go on"

    def work(spark: Any) -> int:
        import time

        print("waits", flush=True)
        while not go_on.exists():
            time.sleep(0.1)
        return int(spark.range(10).count())

    def is_at_work(begun: Begun) -> bool:
        return begun.has_said("waits")

    with open_lab(tmp_path / "lab", owner=name_process(worker.pid)) as lab:
        begun = lab.begin(flow_of(work, dated=True))
        wait_until(lambda: is_at_work(begun), "the step is called", 400)
        worker.kill()
        worker.wait()
        go_on.touch()
        served = begun.end()
        assert (served.code, served.values["work"]) == (0, 10), served.output
        wait_until(lambda: not lab.list_folders(), "it ends")
        assert "Airflow's worker is gone" in read_ends(lab)


def test_no_more_of_them_wait_than_may(tmp_path: Path) -> None:
    """The one that has waited longest ends."""
    with open_lab(tmp_path, terms=Terms(60.0, 50, most_idle=1)) as lab:
        run_once(lab)
        (first,) = lab.list_warm()
        lab.settings["spark.sql.shuffle.partitions"] = "3"
        assert lab.run(flow_of(rows, total, dated=True)).number == 1
        wait_until(lambda: first.folder not in lab.list_folders(), "the first one ends")
        assert "1 others have waited for less long" in read_ends(lab)
        assert len(lab.list_warm()) == 1


def test_what_java_prints_is_kept_for_one_run(tmp_path: Path) -> None:
    """It reaches the launch whose run it is of."""

    def shout(spark: Any, interval: Any) -> None:
        spark.sparkContext._jvm.System.out.println(f"in {interval.key} " + "x" * MEGABYTE)

    with open_lab(tmp_path) as lab:
        for day in range(1, 4):
            ran = lab.run(flow_of(shout, dated=True), interval_key=f"2013-01-0{day}")
            assert (ran.code, ran.number) == (0, day), ran.output
            assert ran.output.count("in 2013-01-0") == ran.output.count(f"in 2013-01-0{day}") == 1
            (application,) = lab.list_warm()
            assert MEGABYTE <= (application.folder / OUTPUT).stat().st_size < 2 * MEGABYTE


def test_a_java_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with open_lab(tmp_path, terms=Terms(1.0, 50)) as lab:
        run_once(lab)
        os.kill(find_host(lab)["java"], signal.SIGSTOP)
        wait_until(lambda: not lab.list_folders(), "its time is over")
        wait_until(lambda: not list_processes(str(lab.folder)), "all its processes end", 40.0)


def test_one_whose_spark_has_stopped_while_it_waited_is_a_cold_start(tmp_path: Path) -> None:
    """As one is that its cluster has ended: the launch that comes goes elsewhere."""

    def leave(spark: Any) -> None:
        java = spark.sparkContext._jvm
        stop = java.java.beans.EventHandler.create(
            java.java.lang.Class.forName("java.lang.Runnable"), spark.sparkContext._jsc.sc(), "stop"
        )
        timer = java.java.util.concurrent.Executors.newSingleThreadScheduledExecutor()
        timer.schedule(stop, 10, java.java.util.concurrent.TimeUnit.SECONDS)

    with open_lab(tmp_path) as lab:
        first = lab.run(flow_of(leave, dated=True))
        assert first.code == 0, first.output
        application, output = lab.list_warm()[0], lab.list_warm()[0].folder / OUTPUT
        wait_until(lambda: "Successfully stopped SparkContext" in output.read_text("utf-8"), "Spark stops")
        second = lab.run(flow_of(rows, total, dated=True))
        assert (second.code, second.number) == (0, 1), second.output
        assert application.folder not in lab.list_folders()
        assert "SparkContext was shut down" in read_ends(lab)


def take_away(folder: Path) -> None:
    """As what cleans up temporary folders does."""
    shutil.rmtree(folder)


def fill(folder: Path) -> None:
    """Nothing can be written in it, as on a full disk."""
    shutil.rmtree(folder)
    folder.mkdir()
    for number in range(64):
        (folder / f"{number:02x}").touch()


@pytest.mark.parametrize(("harm", "reason"), [(take_away, "is gone"), (fill, "its Spark fails: ")])
def test_one_whose_spark_works_no_more_is_a_cold_start(
    tmp_path: Path, harm: Callable[[Path], None], reason: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with open_lab(tmp_path / "lab") as lab:
        lab.settings["spark.local.dir"] = str(temporary)
        run_once(lab)
        (folder,) = temporary.glob("blockmgr-*")
        harm(folder)
        second = lab.run(flow_of(rows, total, dated=True))
        assert (second.code, second.number) == (0, 1), second.output
        assert reason in read_ends(lab)
        assert len(read_ends(lab).splitlines()) == 1


def test_one_whose_spark_does_not_answer_is_a_cold_start(tmp_path: Path) -> None:
    with open_lab(tmp_path) as lab:
        run_once(lab)
        os.kill(find_host(lab)["java"], signal.SIGSTOP)
        second = lab.run(flow_of(rows, total, dated=True))
        assert (second.code, second.number) == (0, 1), second.output
        wait_until((lab.warm / ENDED).exists, "the first one ends")
        assert "while its Spark was tried" in read_ends(lab)
