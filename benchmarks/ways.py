"""Ways to run one case, each timed from outside: the seconds all its spark-submits take.

::

    per_step          step │ step │ step │ ...   one application a step, rows written and read between them
    per_step_by_hand  program │ program │ ...    the same as people do it: each step a program, without any of this
    planned           step - step - step - ...   what the launch tasks submit
    by_hand           program                    all steps in one, as one person would write it, without any of this

    planned_light     as planned, cold: with what a launch task chooses of itself for Java, and an archive
    by_hand_light     as by hand, with the same of both
    planned_warming   as planned_light, where the first application stays for all that comes after it
    planned_warm      as planned_light, handed to an application that stays from a run before

The first four have Java as it comes, and no archive.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from airflow_dagsched.launch.protocol.interval import Interval
from benchmarks.cases import Case
from benchmarks.clock import Clock, Taken
from benchmarks.home import CONF, PLAIN, SWITCH, changed_environment
from benchmarks.places import LOCAL, Place
from benchmarks.warm import COLD, STAYING, ended_at_exit

if TYPE_CHECKING:
    from airflow_dagsched.plan.settings import Mode
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow
    from airflow_dagsched.provider.runtime.attempt import Attempt
    from airflow_dagsched.provider.spec.run_facts import RunFacts
    from airflow_dagsched.provider.wiring.launch import LaunchOperator

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Folders:
    """Of one run. ``out`` and ``work`` are its own."""

    data: Path
    out: Path
    work: Path

    def clear(self) -> None:
        """Remove what a run has left."""
        for folder in (self.out, self.work):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one case in one way."""

    seconds: float
    cpu_s: float
    """Processor time of all processes it started: says more than ``seconds`` on a busy machine."""
    applications: int
    """That were started."""
    predicted_s: float | None = None
    intervals: tuple[Taken, ...] = ()
    """One after another."""


def planned(case: Case, folders: Folders, place: Place = LOCAL) -> Run:
    """As the launch tasks run it, with Java as it comes."""
    return _launch_all(case, folders, place, "planned", PLAIN)


def planned_light(case: Case, folders: Folders, place: Place = LOCAL) -> Run:
    """As planned, with what a launch task chooses for Java, and an archive."""
    return _launch_all(case, folders, place, "planned", place.light, archive="auto")


def planned_warming(case: Case, folders: Folders, place: Place = LOCAL) -> Run:
    """As planned_light, where the first application stays for what comes after it."""
    with ended_at_exit():
        return _launch_all(case, folders, place, "planned", place.light, archive="auto", warm=STAYING)


def planned_warm(case: Case, folders: Folders, place: Place = LOCAL) -> Run:
    """As planned_light, handed to the application that stays from a run before, which counts nowhere."""
    with ended_at_exit():
        _launch_all(case, folders, place, "planned", place.light, archive="auto", warm=STAYING)
        folders.clear()
        return _launch_all(case, folders, place, "planned", place.light, archive="auto", warm=STAYING)


def per_step(case: Case, folders: Folders, place: Place = LOCAL) -> Run:
    """As the launch tasks run it where they are told to submit each step, with Spark's own settings."""
    return _launch_all(case, folders, place, "per_step", PLAIN)


def launch_planned(case: Case, folders: Folders, conf: Mapping[str, str]) -> Run:
    """As the launch tasks run it, with ``conf`` and what they choose themselves."""
    return _launch_all(case, folders, LOCAL, "planned", conf, archive=os.environ[SWITCH])


def pruned(case: Case, folders: Folders) -> Run:
    """As planned: what the run does not need is left out."""
    return _launch_all(case, folders, LOCAL, "planned", CONF, "auto")


def unpruned(case: Case, folders: Folders) -> Run:
    """As planned, with nothing left out."""
    return _launch_all(case, folders, LOCAL, "planned", CONF, False)


def by_hand(case: Case, folders: Folders, place: Place = LOCAL) -> Run:
    """The program written by hand. Raises ``RuntimeError`` with the end of its log."""
    return _submit_programs(case, folders, place, PLAIN)


def per_step_by_hand(case: Case, folders: Folders, place: Place = LOCAL) -> Run:
    """Each step as a program of its own, with Spark's own settings."""
    program = case.by_hand.with_name(f"{case.by_hand.stem}_steps.py")
    submits = tuple((*told, step) for told in case.by_hand_arguments for step in case.by_hand_steps)
    each = dataclasses.replace(case, by_hand=program, by_hand_arguments=submits)
    return _submit_programs(each, folders, place, PLAIN, {"PYTHONPATH": str(ROOT)})


def by_hand_light(case: Case, folders: Folders, place: Place = LOCAL) -> Run:
    """The same, with what a launch task chooses for Java, and an archive."""
    from airflow_dagsched.class_archives.spark_home import locate_spark_submit
    from airflow_dagsched.provider.submission.class_archive import ClassArchive

    submit = locate_spark_submit()
    assert submit is not None
    with changed_environment({SWITCH: "auto"}):
        given = ClassArchive().give(submit, place.master, place.light, os.environ)
    return _submit_programs(case, folders, place, given.settings, given.environment)


def _submit_programs(
    case: Case,
    folders: Folders,
    place: Place,
    conf: Mapping[str, str],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    folders.work.mkdir(parents=True, exist_ok=True)
    log = folders.work / "by_hand.log"
    each = {"spark.master": place.master, **place.conf, **conf}
    settings = [part for name, value in each.items() for part in ("--conf", f"{name}={value}")]
    taken = []
    for arguments in case.by_hand_arguments:
        program = [str(case.by_hand), str(folders.data), str(folders.out), *arguments]
        clock = Clock()
        with log.open("w") as file, changed_environment(environment):
            done = subprocess.run(["spark-submit", *settings, *program], stdout=file, stderr=file, check=False)
        taken.append(clock.read())
        if done.returncode:
            raise RuntimeError(f"{case.by_hand} failed:\n{log.read_text()[-4000:]}")
    return _add_up(taken, len(taken))


def _add_up(taken: list[Taken], applications: int, predicted_s: float | None = None) -> Run:
    """From the first interval's begin to the last one's end: each waits until the one before has cleaned up."""
    seconds = sum(each.seconds for each in taken) + sum(each.quiet_after_s for each in taken[:-1])
    return Run(seconds, sum(each.cpu_s for each in taken), applications, predicted_s, tuple(taken))


Way = Callable[[Case, Folders, Place], Run]
WAYS: dict[str, Way] = {
    "per_step": per_step,
    "per_step_by_hand": per_step_by_hand,
    "planned": planned,
    "by_hand": by_hand,
    "by_hand_light": by_hand_light,
    "planned_light": planned_light,
    "planned_warming": planned_warming,
    "planned_warm": planned_warm,
}


def dataflow(dag_file: Path, variables: Mapping[str, str]) -> SparkDataflow:
    """The dataflow of a DAG file, from a fresh parse of it under ``variables``."""
    from airflow.dag_processing.dagbag import DagBag

    from airflow_dagsched.provider.clusters.planner_hook import list_dataflows

    with changed_environment(variables):
        bag = DagBag(dag_file, collect_dags=False)
        (dag,) = bag.process_file(str(dag_file), only_if_updated=False)  # type: ignore[no-untyped-call]
    return cast("SparkDataflow", next(list_dataflows(dag)))


def _launch_all(
    case: Case,
    folders: Folders,
    place: Place,
    run: Any,
    conf: Mapping[str, str],
    prune: Mode = "auto",
    *,
    archive: str = "off",
    warm: Mapping[str, str] = COLD,
) -> Run:
    """What the launch tasks do, interval after interval."""
    taken: list[Taken] = []
    results: list[dict[str, Any]] = []
    with changed_environment({SWITCH: archive, **warm}):
        launches = dataflow(case.dag_file, case.variables(folders.data, folders.out, folders.work)).launches()
        for launch in launches:
            own = {"run": run, "conf": {**place.conf, **conf}, "prune": prune}
            launch.spec = replace(launch.spec, flow=replace(launch.flow, **own))
        for interval in case.intervals:
            clock = Clock()
            results += [_launch(launch, interval, len(case.intervals) > 1) for launch in launches]
            taken.append(clock.read())
    return _add_up(taken, sum(map(_count_started, results)), sum(result["predicted_s"] for result in results))


def _count_started(result: Mapping[str, Any]) -> int:
    """Applications of a launch task, without the warm one that has served it."""
    return int(result["applications"]) - ((result["warm_run"] or 0) > 1)


def _launch(launch: LaunchOperator, interval: Interval, backfill: bool) -> dict[str, Any]:
    """What the launch task does, without a scheduler to ask for the run's facts."""
    from airflow_dagsched.provider.runtime.execute import run_attempt

    return run_attempt(begin_attempt(launch, interval, backfill=backfill))


def begin_attempt(launch: LaunchOperator, interval: Interval, *, backfill: bool = False) -> Attempt:
    """The first try of a launch task."""
    from airflow_dagsched.launch.protocol.feed import Feed
    from airflow_dagsched.provider.following.follower import Follower
    from airflow_dagsched.provider.runtime.attempt import Attempt
    from airflow_dagsched.provider.runtime.folders import list_bundle_roots, locate_group_folder
    from airflow_dagsched.provider.runtime.memory import Memory

    facts = _make_facts(launch, interval, backfill)
    folder, roots = locate_group_folder(launch.spec, facts), list_bundle_roots(launch.dag.fileloc, {})
    follower = Follower(Feed(nonce="benchmark"), lambda feed: None, lambda done: None, lambda event: None)
    return Attempt(launch, {}, facts, follower, Memory(folder), folder, roots)


def _make_facts(launch: LaunchOperator, interval: Interval, backfill: bool) -> RunFacts:
    from airflow_dagsched.launch.protocol.identity import TryId
    from airflow_dagsched.provider.spec.run_facts import RunFacts

    return RunFacts(
        dag_id=launch.flow.dag_id, run_id=f"benchmark-{interval.key}", try_id=TryId(try_number=1), began=0.0,
        conf={}, interval=interval, context={"params": {}}, states={}, skipped={}, feeds={},
        backfill=backfill,
    )  # fmt: skip
