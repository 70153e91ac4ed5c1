"""The launch task: one Spark application for one group of steps.

Facts, decision, apply: :func:`~airflow_dagsched.provider.facts.gather` asks Airflow what there is to know,
``_submits`` decides what is submitted, ``execute`` submits it and tells the mirrors.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from airflow_dagsched.errors import DagschedError, InvalidInput, LaunchRefused
from airflow_dagsched.launch.escalation import LEVELS, next_level
from airflow_dagsched.launch.events import Failure, Started, StepDone
from airflow_dagsched.launch.feed import GREEN, Feed
from airflow_dagsched.launch.manifest import ENV_NONCE
from airflow_dagsched.launch.outcome import hopeless
from airflow_dagsched.provider.facts import RunFacts, gather
from airflow_dagsched.provider.follow import Follower, Memory, lost
from airflow_dagsched.provider.links import SparkUiLink
from airflow_dagsched.provider.shipping import Paths, Shipment, ship, topological
from airflow_dagsched.provider.submit import FollowedSubmit, check_java, find_spark_submit

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.plan.groups import Grouped
    from airflow_dagsched.provider.dataflow import SparkDataflow
    from airflow_dagsched.provider.graph import DataflowGraph

DRIVER = str(Path(__file__).parents[1] / "spark" / "driver.py")


class LaunchOperator(SparkSubmitOperator):
    """Runs the steps of one group in one Spark application."""

    ui_color = "#ffd9b3"
    operator_extra_links = (SparkUiLink(),)

    def __init__(self, *, flow: SparkDataflow, graph: DataflowGraph, group: Grouped, **kwargs: Any) -> None:
        kwargs.pop("trigger_rule", None)  # from default_args, which mean the author's tasks
        super().__init__(
            application=DRIVER,
            conn_id=flow.conn_id,
            conf=dict(flow.conf),
            name=f"{flow.dag.dag_id}.{flow.group_id}",
            trigger_rule="all_done",
            outlets=_outlets(flow, group.steps),
            durable=False,
            doc_md=_doc(group),
            **kwargs,
        )
        self.flow = flow
        self.graph = graph
        self.group = group

    @property
    def skippers(self) -> list[str]:
        """Ordinary tasks above the dataflow that may skip what is below them."""
        tasks = self.flow.dag.task_dict
        ids = [task.id.removesuffix("@dag") for task in self.graph.dataflow.tasks]
        return [task_id for task_id in ids if tasks[task_id].inherits_from_skipmixin]

    def other_launches(self) -> list[str]:
        """Task ids of the launch tasks of the dataflow's other groups."""
        return [group.task_id for group in self.flow.launches() if group.task_id != self.task_id]

    def execute(self, context: Context) -> dict[str, Any]:
        """Run what can run; fail if any step failed; return what was measured."""
        began = time.monotonic()
        facts = gather(self, context)
        folder = run_folder(self.flow.work_dir, facts.dag_id, facts.run_id) / self.group.id
        memory = Memory(folder)
        follower = self._follower(context, facts)
        try:
            predicted = self._run(context, facts, follower, memory, folder)
        except DagschedError as error:
            self._blame(follower, error)
            raise AirflowFailException(str(error)) from None
        finally:
            follower.close()
        return self._conclude(facts, follower, memory, time.monotonic() - began, predicted)

    def _follower(self, context: Context, facts: RunFacts) -> Follower:
        ti = context["ti"]
        feed = Feed(nonce=secrets.token_hex(8), clear_number=facts.clear_number)

        def started(event: Started) -> None:
            if event.ui:
                ti.xcom_push(key=SparkUiLink().xcom_key, value=event.ui)

        follower = Follower(feed, ti.xcom_push, started)
        follower.push()
        return follower

    def _run(self, context: Context, facts: RunFacts, follower: Follower, memory: Memory, folder: Path) -> float:
        """Submit what there is to submit; returns the predicted seconds."""
        level = LEVELS[memory.level]
        per_step = level.per_step or self._per_step(facts)
        steps = [name for name in topological(self.graph) if name in self.group.steps]
        predicted = 0.0
        for targets in [(name,) for name in steps] if per_step else [tuple(steps)]:
            follower.finished = None
            paths = _paths(folder, facts, targets)
            shipment = self._ship(context, facts, follower, targets, paths, level)
            without = hopeless(spec for spec in shipment.manifest.steps if spec.id in targets)
            if len(without) == len(targets):
                follower.take(without.values())
                continue
            predicted += self._size(level, shipment)
            self._submit(context, shipment, paths, follower, memory)
        return predicted

    def _ship(
        self, context: Context, facts: RunFacts, follower: Follower, targets: tuple[str, ...], paths: Paths, level: Any
    ) -> Shipment:
        known = [*facts.feeds.values(), follower.feed]
        done = {name: end for feed in known for name, end in feed.steps.items()}
        datasets = {f"{name}/{output}": path for name, end in done.items() for output, path in end.datasets.items()}
        env = self.get_template_env()
        return ship(
            self.flow, self.graph, self.group.id, targets, facts, paths,
            lambda value: self.render_template(value, context, env),
            roots=bundle_roots(self.flow, context),
            slots=1 if level.one_at_a_time else self.flow.slots,
            datasets=datasets,
            states={name: end.state for name, end in done.items()},
        )  # fmt: skip

    def _per_step(self, facts: RunFacts) -> bool:
        from airflow.sdk.configuration import conf

        asked = (facts.conf.get("dagsched") or {}).get("run", self.flow.run)
        return asked == "per_step" or not conf.getboolean("dagsched", "enabled", fallback=True)

    def _size(self, level: Any, shipment: Shipment) -> float:
        """Spark settings for the group on the cluster as it is now; returns the predicted seconds."""
        from airflow_dagsched.provider.hook import PlannerHook
        from airflow_dagsched.provider.sizing import settings_for

        hook = PlannerHook(self.flow.conn_id)
        hook.check_connection(self.group.id)
        settings, predicted = settings_for(self.flow, self.graph, self.group.id, hook.cluster(), level)
        self.conf = {**settings, **self.flow.conf}
        return predicted

    def _submit(self, context: Context, shipment: Shipment, paths: Paths, follower: Follower, memory: Memory) -> None:
        check_java(self.group.id)
        self._spark_binary = self._spark_binary or find_spark_submit(self.group.id)
        Path(paths.folder).mkdir(parents=True, exist_ok=True)
        Path(paths.manifest).write_text(shipment.manifest.to_json())
        write_private(paths.payload, shipment.payload)
        nonce = secrets.token_hex(16)
        self.application_args = [paths.manifest]
        self.env_vars = driver_environment(nonce, bundle_roots(self.flow, context))
        self._hook = self._get_hook()
        self._hook.on_line = lambda line: follower.line(nonce, line)
        try:
            super().execute(context)
        except AirflowException as error:
            follower.catch_up(paths.events)
            self._explain(error, follower, memory)
        finally:
            Path(paths.payload).unlink(missing_ok=True)

    def _explain(self, error: AirflowException, follower: Follower, memory: Memory) -> None:
        """A driver that said why it failed is judged by that; one that was lost, here."""
        finished = follower.finished
        failed = [done for done in follower.feed.steps.values() if done.state not in GREEN and done.failure]
        failure = (finished.failure if finished else lost(str(error))) or next((done.failure for done in failed), None)
        if failure is not None:
            memory.remember(level=next_level(memory.level, failure.kind))
        if finished is None or (failure is not None and not failed):
            raise AirflowException(f"{failure.kind}: {failure.message}" if failure else str(error)) from error

    def _get_hook(self) -> FollowedSubmit:
        plain = super()._get_hook()
        plain.__class__ = FollowedSubmit
        return plain  # type: ignore[return-value]

    def _blame(self, follower: Follower, error: DagschedError) -> None:
        """Every step that has no end yet failed for the same reason."""
        failure = Failure("refused", str(error))
        named = [name for name in self.group.steps if isinstance(error, InvalidInput) and repr(self.flow.steps[name].task_id) in error.where]
        for name in self.group.steps:
            if name not in follower.feed.steps:
                at_fault = not named or name in named
                reason = "" if at_fault else f"not run: {error}"
                follower.take([StepDone(name, "failed" if at_fault else "upstream_failed", failure=failure, reason=reason)])

    def _conclude(
        self, facts: RunFacts, follower: Follower, memory: Memory, seconds: float, predicted: float
    ) -> dict[str, Any]:
        ends = follower.feed.steps
        bad = [done for done in ends.values() if done.state in ("failed", "upstream_failed")]
        missing = [name for name in self.group.steps if name not in ends]
        if missing:
            raise AirflowException(f"the driver program ended without a word on {', '.join(missing)}")
        if bad:
            self._raise(bad)
        if all(done.state == "skipped" for done in ends.values()):
            raise AirflowSkipException("every step of the group is skipped")
        self._emit(ends, memory)
        return {
            "steps": {name: _measured(done) for name, done in ends.items()},
            "applications": follower.applications,
            "predicted_s": round(predicted, 1),
            "measured_s": round(seconds, 1),
        }

    def _raise(self, bad: Sequence[StepDone]) -> None:
        """A failed step may be mended by a retry; a step whose upstream failed may not."""
        text = "; ".join(f"{done.step}: {done.failure.message if done.failure else done.reason or done.state}" for done in bad)
        if all(done.state == "upstream_failed" for done in bad):
            raise AirflowFailException(text)
        raise AirflowException(text)

    def _emit(self, ends: Mapping[str, StepDone], memory: Memory) -> None:
        """Keep the outlets of what was really written; a reused output only if no earlier try emitted it."""
        fresh = {
            name for name, done in ends.items()
            if done.state == "success" or (done.state == "reused" and name not in memory.emitted)
        }  # fmt: skip
        self.outlets = _outlets(self.flow, [name for name in self.group.steps if name in fresh])
        memory.remember(level=0, emitted=set(ends) & (fresh | memory.emitted))


def _outlets(flow: SparkDataflow, steps: Sequence[str]) -> list[Any]:
    found: list[Any] = []
    for name in steps:
        step = flow.steps[name]
        if step.declared.writes is not None:
            found.append(Asset(name=step.declared.writes.location, uri=step.declared.writes.uri))
        found += step.step_outlets
    return found


def _doc(group: Grouped) -> str:
    return f"Runs {len(group.steps)} step(s) as one Spark application: {', '.join(group.steps)}.\n\n{group.reason}"


def _measured(done: StepDone) -> dict[str, Any]:
    return {"state": done.state, "rows": done.rows, "bytes": done.bytes, "seconds": done.seconds}


def run_folder(work_dir: str, dag_id: str, run_id: str) -> Path:
    """Folder of one run's manifests and events."""
    return Path(work_dir.removeprefix("file://")) / "runs" / dag_id / _safe(run_id)


def _safe(text: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in text)


def _paths(folder: Path, facts: RunFacts, targets: tuple[str, ...]) -> Paths:
    part = f"{facts.clear_number}-{facts.try_number}" + (f"-{_safe(targets[0])}" if len(targets) == 1 else "")
    here = folder / part
    private = tempfile.mkdtemp(prefix="dagsched-")
    return Paths(str(here), str(here / "events.jsonl"), str(here / "manifest.json"), str(Path(private, "payload")))


def write_private(path: str, content: bytes) -> None:
    """Write a file only this user can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def driver_environment(nonce: str, roots: Sequence[Path]) -> dict[str, str]:
    """Environment of the driver program: this Python, this package, the DAG bundle's modules."""
    import sys

    package = str(Path(__file__).parents[2])
    paths = [package, *map(str, roots), os.environ.get("PYTHONPATH", "")]
    python = {name: os.environ.get(name, sys.executable) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    return {ENV_NONCE: nonce, "PYTHONPATH": os.pathsep.join(path for path in paths if path), **python}


def bundle_roots(flow: SparkDataflow, context: Mapping[str, Any]) -> tuple[Path, ...]:
    """Folders whose modules are the author's: the DAG bundle, else the folder of the DAG file."""
    bundle = getattr(context.get("ti"), "bundle_instance", None)
    found = [Path(str(bundle.path))] if bundle is not None else []
    return tuple(dict.fromkeys([*found, Path(flow.dag.fileloc).parent]))




__all__ = ["LaunchOperator"]
