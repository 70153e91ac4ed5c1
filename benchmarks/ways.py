"""Ways to run one case, each timed from outside: the seconds all its spark-submits take. All with the same Java.

::

    per_step   step │ step │ step │ ...   one application a step, rows written and read between them
    planned    step - step - step - ...   what the launch tasks submit
    by_hand    program                    what a person would write without any of this

``planned_light`` and ``by_hand_light``: both with what a launch task chooses of itself, Java's quick compiler and an
archive of classes. The others have neither.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from airflow_dagsched.launch.protocol.interval import Interval
from benchmarks.cases import Case
from benchmarks.home import CONF, LIGHT, MASTER, PLAIN, SWITCH, give_archive

if TYPE_CHECKING:
    from airflow_dagsched.plan.settings import Mode
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow
    from airflow_dagsched.provider.runtime.attempt import Attempt
    from airflow_dagsched.provider.spec.run_facts import RunFacts
    from airflow_dagsched.provider.wiring.launch import LaunchOperator


@dataclass(frozen=True, slots=True)
class Folders:
    """Of one run. ``out`` and ``work`` are its own."""

    data: Path
    out: Path
    work: Path


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one case in one way."""

    seconds: float
    cpu_s: float
    """Processor time of all processes it started: says more than ``seconds`` on a busy machine."""
    applications: int
    predicted_s: float | None = None


class Clock:
    """Wall clock and processor time of child processes, from its making on."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), _children_cpu_s()

    def read(self) -> tuple[float, float]:
        """Seconds on the wall, seconds of processor."""
        return time.perf_counter() - self._wall, _children_cpu_s() - self._cpu


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def planned(case: Case, folders: Folders) -> Run:
    """As the launch tasks run it, with Java as it comes."""
    return _launched(case, folders, "planned", PLAIN)


def planned_light(case: Case, folders: Folders) -> Run:
    """As planned, with the quick compiler and an archive."""
    return _launched(case, folders, "planned", LIGHT, archive="auto")


def per_step(case: Case, folders: Folders) -> Run:
    """As the launch tasks run it where they are told to submit each step, with Spark's own settings."""
    return _launched(case, folders, "per_step", PLAIN)


def launch_planned(case: Case, folders: Folders, conf: Mapping[str, str]) -> Run:
    """As the launch tasks run it, with ``conf`` and what they choose themselves."""
    return _launched(case, folders, "planned", conf, archive=os.environ[SWITCH])


def pruned(case: Case, folders: Folders) -> Run:
    """As planned: what the run does not need is left out."""
    return _launched(case, folders, "planned", CONF, "auto")


def unpruned(case: Case, folders: Folders) -> Run:
    """As planned, with nothing left out."""
    return _launched(case, folders, "planned", CONF, False)


def by_hand(case: Case, folders: Folders) -> Run:
    """The program written by hand. Raises ``RuntimeError`` with the end of its log."""
    return _submit_program(case, folders, PLAIN)


def by_hand_light(case: Case, folders: Folders) -> Run:
    """The same, with the quick compiler and an archive."""
    return _submit_program(case, folders, give_archive(LIGHT))


def _submit_program(case: Case, folders: Folders, conf: Mapping[str, str]) -> Run:
    folders.work.mkdir(parents=True, exist_ok=True)
    log = folders.work / "by_hand.log"
    settings = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    program = [str(case.by_hand), str(folders.data), str(folders.out), *case.by_hand_arguments]
    clock = Clock()
    with log.open("w") as file:
        done = subprocess.run(
            ["spark-submit", "--master", MASTER, *settings, *program], stdout=file, stderr=file, check=False
        )
    taken = clock.read()
    if done.returncode:
        raise RuntimeError(f"{case.by_hand} failed:\n{log.read_text()[-4000:]}")
    return Run(*taken, 1)


Way = Callable[[Case, Folders], Run]
WAYS: dict[str, Way] = {
    "per_step": per_step,
    "planned": planned,
    "by_hand": by_hand,
    "planned_light": planned_light,
    "by_hand_light": by_hand_light,
}


def dataflow(dag_file: Path, variables: Mapping[str, str]) -> SparkDataflow:
    """The dataflow of a DAG file, from a fresh parse of it under ``variables``."""
    from airflow.dag_processing.dagbag import DagBag

    from airflow_dagsched.provider.clusters.planner_hook import list_dataflows

    os.environ |= variables
    bag = DagBag(dag_file, collect_dags=False)
    (dag,) = bag.process_file(str(dag_file), only_if_updated=False)  # type: ignore[no-untyped-call]
    return cast("SparkDataflow", next(list_dataflows(dag)))


def _launched(
    case: Case, folders: Folders, run: Any, conf: Mapping[str, str], prune: Mode = "auto", *, archive: str = "off"
) -> Run:
    os.environ[SWITCH] = archive
    flow = dataflow(case.dag_file, case.variables(folders.data, folders.out, folders.work))
    clock = Clock()
    for launch in flow.launches():
        launch.spec = replace(launch.spec, flow=replace(launch.flow, run=run, conf=dict(conf), prune=prune))
    results = [_launch(launch, case) for launch in flow.launches()]
    taken = clock.read()
    predicted = sum(result["predicted_s"] for result in results)
    return Run(*taken, sum(result["applications"] for result in results), predicted)


def _launch(launch: LaunchOperator, case: Case) -> dict[str, Any]:
    """What the launch task does, without a scheduler to ask for the run's facts."""
    from airflow_dagsched.provider.runtime.execute import run_attempt

    return run_attempt(begin_attempt(launch, case.interval))


def begin_attempt(launch: LaunchOperator, interval: Interval) -> Attempt:
    """The first try of a launch task."""
    from airflow_dagsched.launch.protocol.feed import Feed
    from airflow_dagsched.provider.following.follower import Follower
    from airflow_dagsched.provider.runtime.attempt import Attempt
    from airflow_dagsched.provider.runtime.folders import list_bundle_roots, locate_group_folder
    from airflow_dagsched.provider.runtime.memory import Memory

    facts = _facts(launch, interval)
    folder, roots = locate_group_folder(launch.spec, facts), list_bundle_roots(launch.dag.fileloc, {})
    follower = Follower(Feed(nonce="benchmark"), lambda feed: None, lambda done: None, lambda event: None)
    return Attempt(launch, {}, facts, follower, Memory(folder), folder, roots)


def _nobody(*_news: Any) -> None:
    """There is no Airflow to tell."""


def _facts(launch: LaunchOperator, interval: Interval) -> RunFacts:
    from airflow_dagsched.launch.protocol.identity import TryId
    from airflow_dagsched.provider.spec.run_facts import RunFacts

    return RunFacts(
        dag_id=launch.flow.dag_id, run_id="benchmark", try_id=TryId(try_number=1), began=0.0,
        conf={}, interval=interval, context={"params": {}}, states={}, skipped={}, feeds={},
    )  # fmt: skip
