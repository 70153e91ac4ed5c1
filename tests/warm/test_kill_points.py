"""Each process of a warm application, of a run, or of its launch, killed at each point: every run ends right, and
nothing is left once the application's time is over.

::

    launch task -> relay ->        socket            manifest            end            Spark stops
    host           (starts)  ───────┼───────────────────┼───────────────────┼──> idle ──────┼──>
    keeper                             Spark starts                            cleans
    run                                                   steps, commit

A step that writes a table is killed and tried again: the table has its rows, once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.provider.warm.applications import tell_end
from airflow_dagsched.spark.outputs.leases import RELEASED
from tests.warm import held
from tests.warm.kit import (
    LONG_S,
    Begun,
    Lab,
    flow_of,
    list_children,
    list_processes,
    name_parts,
    open_lab,
    sleeping_process,
    wait_until,
)

IDLE = "it waits"
pytestmark = [pytest.mark.spark, pytest.mark.warm]

ROWS = 10
EXPECTED = list(range(ROWS))
ENDS = ("before it ends", "its folder is gone")
AT_FIRST: dict[str, tuple[str, ...]] = {
    "before the socket is there": ("host", "launch"),
    "before the manifest is handed over": ("java",),
    "the manifest is handed over": ("launch",),
    "before Spark is there": ("java", "launch"),
}
"""Points of the first run in an application."""
LATER: dict[str, tuple[str, ...]] = {
    "before the run's process is there": ("host",),
    "before the steps": ("java",),
    "a step runs": ("host", "java", "launch", "relay", "keeper", "run"),
    "a job runs": ("host", "java", "launch"),
    "before the commit": ("launch",),
    "the journal is written": ("host", "java"),
    "the record is written, nothing is moved": ("host", "launch"),
    "all is moved": ("java",),
    "behind the commit": ("host",),
    "behind the steps": ("launch",),
    "before its end is told": ("host", "java"),
}
"""Points of any run."""
AFTER: dict[str, tuple[str, ...]] = {
    "its end is heard": ("launch",),
    "before it is cleaned": ("java", "keeper"),
    "it is cleaned": ("host",),
    IDLE: ("host", "java"),
    "before it ends": ("host", "java"),
    "its folder is gone": ("host",),
}
"""Points where the run has ended well, whoever is killed."""
HOLD = "hold"


TIME_S = 60.0
"""That an application has between two tests."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Of all tests: each run is the next one of the application that the test before has left."""
    folder, program = tmp_path_factory.mktemp("killed"), held.__file__
    with open_lab(
        folder, terms=Terms(TIME_S, 50), relay=(sys.executable, program, "relay"), host=(program, "host")
    ) as lab:
        lab.variables[held.VARIABLE] = str(folder / HOLD)
        yield lab
        (folder / HOLD).unlink(missing_ok=True)


@pytest.fixture
def hold(lab: Lab) -> Iterator[Path]:
    """The file that names a point."""
    (lab.folder / held.REACHED).unlink(missing_ok=True)
    yield lab.folder / HOLD
    (lab.folder / HOLD).unlink(missing_ok=True)


@pytest.fixture
def launch() -> Iterator[subprocess.Popen[bytes]]:
    """The process that Airflow runs."""
    with sleeping_process() as started:
        yield started


def write(spark: Any) -> Any:
    import os
    from pathlib import Path

    from tests.warm.held import VARIABLE, stand_still

    hold = Path(os.environ[VARIABLE])
    stand_still("a step runs", hold)

    def pass_on(rows: Any) -> Any:
        stand_still("a job runs", hold)
        return rows

    return spark.range(ROWS).rdd.mapPartitions(pass_on).toDF("id long")


def read(spark: Any) -> int:
    return int(spark.range(ROWS).count())


def find_processes(lab: Lab, begun: Begun, launch: int) -> dict[str, int]:
    """Who may be killed, by what it is; those that are there."""
    return {**name_parts(list_processes(str(lab.warm))), "relay": begun.relay.pid, "launch": launch}


def come_to(lab: Lab, begun: Begun, at: str) -> None:
    """Wait until a process stands still at that point."""
    if at in ENDS:
        begun.end()
        for each in lab.list_warm():
            tell_end(each, "a test")
    if at == IDLE:
        begun.end()
        wait_until(lambda: (found := lab.find_status()) is not None and found.state == "idle", "it is idle")
    else:
        wait_until((lab.folder / held.REACHED).exists, f"somebody comes to: {at}", LONG_S)


def read_rows(table: Path) -> list[int]:
    return sorted(ds.dataset(table).to_table()["id"].to_pylist()) if table.exists() else []


def list_rest(lab: Lab) -> list[str]:
    """Processes, folders and locks that are there, but for those of an application that waits."""
    waiting = {str(each.folder) for each in lab.list_warm()}
    own = {pid for folder in waiting for pid in list_family(folder)}
    processes = {pid: words for pid, words in list_processes(str(lab.folder)).items() if pid not in own}
    folders = [each for each in lab.list_folders() if str(each) not in waiting]
    return [
        *(f"process {pid}: {' '.join(words)[:300]}" for pid, words in processes.items()),
        *(f"folder {each}" for each in folders),
        *(f"more than one application: {each}" for each in sorted(waiting)[1:]),
        *list_locks(lab.folder),
        *list_leases(lab.folder),
    ]


def list_family(folder: str) -> Iterator[int]:
    """Processes of the application in that folder, and theirs."""
    found = [pid for pid, words in list_processes(folder).items() if folder in words]
    while found:
        yield (pid := found.pop())
        found += list_children(pid)


def list_locks(folder: Path) -> Iterator[str]:
    """Files there that a process has locked."""
    locked = {line.split()[-3].rpartition(":")[2] for line in Path("/proc/locks").read_text().splitlines()}
    return (f"lock {each}" for each in folder.rglob("*") if str(each.lstat().st_ino) in locked)


def list_leases(folder: Path) -> Iterator[str]:
    """Leases there that nobody gave back, or took after it."""
    for leases in {each.parent for each in folder.rglob("leases/*/*/*.json")}:
        newest = max(leases.glob("*.json"))
        if json.loads(newest.read_text())["expires"] != RELEASED:
            yield f"lease {newest}"


def let_wait(lab: Lab) -> None:
    """Have an application there that waits."""
    if not lab.list_warm():
        assert lab.run(flow_of(read)).code == 0
    wait_until(lambda: (found := lab.find_status()) is not None and found.state == "idle", "it is idle")


def end_waiting(lab: Lab) -> None:
    for each in lab.list_warm():
        tell_end(each, "a test needs none")
    wait_until(lambda: not lab.list_folders(), "no application is there")


def list_kills(points: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(at, of) for at, whom in points.items() for of in whom]


@pytest.mark.parametrize(("at", "of"), [*list_kills(AT_FIRST), *list_kills(LATER), *list_kills(AFTER)])
def test_after_a_kill_each_run_ends_right(
    at: str, of: str, lab: Lab, hold: Path, launch: subprocess.Popen[bytes]
) -> None:
    """The run that is killed or not, and its next try; nothing is left but the application of that one."""
    (end_waiting if at in AT_FIRST else let_wait)(lab)
    table = lab.folder / f"{at} {of}".replace(" ", "-")
    flow = flow_of(write, dated=True, writes=Table(str(table)))
    hold.write_text(at)
    begun = lab.begin(flow, launcher=launch.pid)
    come_to(lab, begun, at)
    os.kill(find_processes(lab, begun, launch.pid)[of], signal.SIGKILL)
    hold.unlink()
    served = begun.end()
    if at in AFTER and of != "launch":
        assert served.code == 0, served.output
    assert read_rows(table) in (([], EXPECTED) if served.code else (EXPECTED,))
    again = lab.run(flow, try_number=2)
    assert again.code == 0, again.output
    assert read_rows(table) == EXPECTED
    wait_until(lambda: not list_rest(lab), lambda: f"nothing is left: {list_rest(lab)}")


@pytest.mark.parametrize("of", ["java", "host", "keeper"])
def test_an_application_that_goes_as_a_run_comes_is_a_cold_start(
    of: str, lab: Lab, hold: Path, launch: subprocess.Popen[bytes]
) -> None:
    """Killed when the launch has chosen it, and has not yet handed the manifest over."""
    let_wait(lab)
    hold.write_text("before the manifest is handed over")
    begun = lab.begin(flow_of(read))
    come_to(lab, begun, "before the manifest is handed over")
    os.kill(find_processes(lab, begun, launch.pid)[of], signal.SIGKILL)
    hold.unlink()
    served = begun.end()
    assert (served.code, served.number) == (0, 1), served.output
    wait_until(lambda: not list_rest(lab), lambda: f"nothing is left: {list_rest(lab)}")


def test_nothing_is_left_when_the_time_is_over(lab: Lab) -> None:
    """The last one, of the application that all the others have left."""
    let_wait(lab)
    wait_until(lambda: not lab.list_warm(), "its time is over", 2 * TIME_S)
    wait_until(lambda: not list_rest(lab), lambda: f"nothing is left: {list_rest(lab)}")
