"""One try of a launch task: facts, decision, apply.

:func:`~airflow_dagsched.provider.facts.gather` asks Airflow what there is to know, :meth:`GroupRun.submits`
decides what is submitted, the rest submits it, follows it and concludes.
"""

from __future__ import annotations

import logging
import secrets
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.execution_time.xcom import XCom

from airflow_dagsched.errors import DagschedError, DoesNotFit, InvalidInput, LaunchRefused
from airflow_dagsched.launch.choose import Chosen
from airflow_dagsched.launch.cutting import Unit, cut_to_fit, halves
from airflow_dagsched.launch.escalation import LEVELS, Level, next_level
from airflow_dagsched.launch.events import Failure, Started, StepDone
from airflow_dagsched.launch.executors import executors
from airflow_dagsched.launch.feed import Feed, xcoms
from airflow_dagsched.launch.learning import Ran
from airflow_dagsched.launch.outcome import hopeless
from airflow_dagsched.launch.pruned import ends_of, left_nothing
from airflow_dagsched.launch.stranded import Stranded, stranded
from airflow_dagsched.plan.prune.steps import dataset_of
from airflow_dagsched.provider.facts import RunFacts, gather
from airflow_dagsched.provider.follow import Follower, Memory, lost
from airflow_dagsched.provider.foresight import foretell
from airflow_dagsched.provider.history import record
from airflow_dagsched.provider.hook import PlannerHook
from airflow_dagsched.provider.links import SparkUiLink
from airflow_dagsched.provider.outlets import outlets_of
from airflow_dagsched.provider.pruning import Pruning, pruning_of
from airflow_dagsched.provider.shipping import Paths, Shipment, driver_environment, paths_in, ship, write_private
from airflow_dagsched.provider.sizing import Room, Sized, knowledge, room_for, sized
from airflow_dagsched.provider.specs import Submit, parts_of
from airflow_dagsched.provider.submit import check_java
from airflow_dagsched.provider.watching import Watch

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.dataflow import SparkDataflow
    from airflow_dagsched.provider.launch import LaunchOperator

log = logging.getLogger(__name__)


@dataclass(eq=False)
class GroupRun:
    """What one try has at hand."""

    launch: LaunchOperator
    context: Context
    facts: RunFacts
    follower: Follower
    memory: Memory
    folder: Path
    roots: tuple[Path, ...]
    began: float = field(default_factory=time.monotonic)
    predicted_s: float = 0.0
    applications: list[Ran] = field(default_factory=list)
    """Those that ended well."""
    cuts: list[str] = field(default_factory=list)
    """Why the group runs in several applications."""
    left: dict[str, Any] = field(default_factory=dict)
    """What the run had left as this try began."""
    stranded: int = 0
    """Applications that were left without workers."""

    @classmethod
    def of(cls, launch: LaunchOperator, context: Context) -> GroupRun:
        """Gather the facts and open the feed."""
        facts = gather(launch, context)
        folder = group_folder(launch, facts)
        follower = _follower(launch, context, facts)
        return cls(launch, context, facts, follower, Memory(folder), folder, bundle_roots(launch.flow, context))

    @property
    def level(self) -> Level:
        return LEVELS[self.memory.level]

    @cached_property
    def hook(self) -> PlannerHook:
        return PlannerHook(self.launch.flow.conn_id)

    def execute(self) -> dict[str, Any]:
        """Submit what there is to submit, tell the mirrors, return what was measured."""
        try:
            self.left = foretell(self.launch, self.facts, self.hook, self.folder.parent)
            self._run_all()
        except DagschedError as error:
            self._blame(error)
            log.debug("why the launch is refused", exc_info=True)
            passing = isinstance(error, LaunchRefused) and error.passing
            raise (AirflowException if passing else AirflowFailException)(str(error)) from None
        finally:
            self.follower.close()
        return self._conclude()

    def _run_all(self) -> None:
        """Once; where memory runs out again, with more of it, and in smaller parts."""
        while True:
            level = self.memory.level
            try:
                for targets in self.submits():
                    self._run(targets)
                return
            except AirflowException as error:
                if self.memory.level == level or self.launch.stopped:
                    raise
                log.warning("%s", error)
            self._note(f"out of memory: tried again with {self.level}")
            self.follower.forget_bad()

    def submits(self) -> tuple[Unit, ...]:
        """The steps of each submit, in order: all of the group in one, or as the level and the author ask for."""
        units = self._units(self.launch.group.steps)
        if self.level.per_step or self._per_step():
            return units
        return halves(units) if self.level.halved else (tuple(chain.from_iterable(units)),)

    def _units(self, steps: Iterable[str]) -> tuple[Unit, ...]:
        """``steps`` in topological order, a repeat block whole."""
        inside, blocks = set(steps), self.launch.flow.blocks()
        ordered = (name for name in self.launch.graph.topological() if name in inside)
        return tuple(dict.fromkeys(blocks.get(name, (name,)) for name in ordered))

    def _per_step(self) -> bool:
        from airflow.sdk.configuration import conf

        asked = (self.facts.conf.get("dagsched") or {}).get("run", self.launch.flow.run)
        return asked == "per_step" or not conf.getboolean("dagsched", "enabled", fallback=True)

    def _run(self, targets: Unit) -> None:
        """One application; several, one after another, where the cluster is too small for that; again, where it was
        left without workers.
        """
        try:
            self._run_as_one(targets)
        except DoesNotFit as refused:
            parts = cut_to_fit(self._units(targets), knowledge(self.launch, self.hook, self.level))
            if len(parts) == 1:
                raise
            self._note(f"cut into {len(parts)} applications, one after another: {refused}")
            for part in parts:
                self._run(part)
        except Stranded as found:
            self._note(str(found))
            self.stranded += 1
            self.follower.forget_bad()
            self._run(targets)

    def _note(self, why: str) -> None:
        """Say, in the log and in what the launch task returns, why there are more applications than groups."""
        log.warning("%s: %s", self.launch.group.id, why)
        self.cuts.append(why)

    def _run_as_one(self, targets: Unit) -> None:
        with tempfile.TemporaryDirectory(prefix="dagsched-") as private:
            self._run_in(targets, paths_in(self.folder / self._name(targets), private))

    def _run_in(self, targets: Unit, paths: Paths) -> None:
        """Submit the steps, unless none of them is called: because of what is above them, or of what is not."""
        self.follower.open(paths.events)
        submit = self._asked_for(targets)
        parts = parts_of(submit)
        pruning = pruning_of(submit, parts, self.hook.master, self.hook.listing)
        parts = pruning.applied(parts)
        mine = [spec for spec in parts.specs if spec.id in targets]
        without = {**ends_of(mine), **hopeless(mine)}
        if len(without) < len(targets):
            slots = 1 if self.level.one_at_a_time else self.launch.flow.slots
            self._submit(targets, ship(submit, parts, self.launch.group.id, paths, slots=slots), paths, pruning)
            return
        for done in without.values():
            log.info("%s: %s: %s", done.step, done.state, done.reason)
        self.follower.take(without.values())

    def _name(self, targets: Unit) -> str:
        """Folder of one submit: clear and try, then what else tells it from others of its try."""
        facts, whole = self.facts, len(targets) == len(self.launch.group.steps) > 1
        more = f"x{self.level.memory_factor}" if self.level.memory_factor > 1 else ""
        again = f"again{self.stranded}" if self.stranded else ""
        parts = (str(facts.clear_number), str(facts.try_number), more, again, "" if whole else _safe(targets[0]))
        return "-".join(part for part in parts if part)

    def _asked_for(self, targets: tuple[str, ...]) -> Submit:
        launch, known = self.launch, [*self.facts.feeds.values(), self.follower.feed]
        done = {name: end for feed in known for name, end in feed.steps.items()}
        env = launch.get_template_env()
        return Submit(
            launch.flow,
            launch.graph,
            targets,
            self.facts,
            render=lambda value: launch.render_template(value, self.context, env),
            roots=self.roots,
            states={name: end.state for name, end in done.items()},
            datasets={f"{name}/{output}": path for name, end in done.items() for output, path in end.datasets.items()},
            empty=frozenset(
                dataset_of(output.step, output.name)
                for outputs in launch.graph.inputs.values()
                for output in outputs
                if output.step in done and left_nothing(done[output.step])
            ),
        )

    def _submit(self, targets: Unit, shipment: Shipment, paths: Paths, pruning: Pruning) -> None:
        launch = self.launch
        self.hook.check_connection(launch.group.id)
        check_java(launch.group.id)
        with room_for(launch, self.hook, self.level, targets, pruning) as room:
            Path(paths.folder).mkdir(parents=True, exist_ok=True)
            planned = sized(launch, self.hook, room.chosen, self.level, Path(paths.folder))
            self.predicted_s += planned.predicted_s
            began = time.monotonic()
            if self._submit_with(planned.conf, shipment, paths, room):
                self.applications.append(self._ran(targets, planned, began))

    def _submit_with(self, conf: dict[str, str], shipment: Shipment, paths: Paths, room: Room) -> bool:
        """Whether the application ended well; raises what Airflow is to know of one that did not, and ``Stranded``."""
        watch = self._watch(conf, room.chosen)
        nonce = secrets.token_hex(16)
        Path(paths.manifest).write_text(shipment.manifest.masked())
        write_private(paths.payload, shipment.payload)
        failed = None
        try:
            self.launch.submit(
                self.context,
                conf=conf,
                arguments=[paths.manifest],
                env=driver_environment(nonce, self.roots),
                on_line=lambda line: self._line(nonce, line, room, watch),
            )
        except AirflowException as error:
            failed = error
        self.follower.catch_up()
        if failed is not None and watch.stranded and not self.launch.stopped:
            raise Stranded(watch.stranded)
        if failed is not None:
            self._explain(failed)
        return failed is None

    def _line(self, nonce: str, line: str, room: Room, watch: Watch) -> bool:
        """Take in a line of the driver's output; once the application has started, its cluster counts it."""
        before = self.follower.applications
        taken = self.follower.line(nonce, line)
        if self.follower.applications > before:
            room.started()
        watch.look(self.follower.executors, time.monotonic())
        return taken

    def _watch(self, conf: Mapping[str, str], chosen: Chosen) -> Watch:
        """Over an application submitted with ``conf``."""
        asked = executors(chosen.group, chosen.cluster, self.level)
        declared = self.launch.flow.declared_cluster
        return Watch(
            self.hook.executor_within_s,
            lambda: stranded(chosen, asked, conf, self.hook.cluster(declared)),
            self.launch.end_submit,
        )

    def _ran(self, targets: Unit, planned: Sized, began: float) -> Ran:
        """What is to be learned of an application that was submitted at ``began`` and has ended."""
        ends, begun = self.follower.feed.steps, self.follower.begun
        more = dict.fromkeys(targets, planned.memory_mb) if self.level.memory_factor > 1 else {}
        return Ran(
            seconds=time.monotonic() - began,
            cores=planned.cores,
            ends=tuple(ends[name] for name in targets if name in ends),
            begun={name: begun[name] - began for name in targets if name in begun},
            wanted=planned.wanted,
            memory_mb=more,
        )

    def _explain(self, error: AirflowException) -> None:
        """A driver that said why it failed is judged by that; one that was lost, here."""
        finished = self.follower.finished
        bad = _bad(self.follower.feed.steps.values())
        failure = finished.failure if finished else lost(str(error))
        cause = failure or next((done.failure for done in bad if done.failure), None)
        if cause is not None and cause.kind == "lost_driver" and self.follower.ran_out_of_memory:
            cause = Failure("out_of_memory", "the driver program ran out of memory: it gets more of it")
        level = self.memory.level
        if cause is not None:
            self.memory.remember(level=next_level(level, cause.kind))
        if cause is not None and cause.kind == "refused":
            raise AirflowFailException(cause.message) from error
        if failure is not None or not bad or self.memory.level > level:
            raise AirflowException(f"{cause.kind}: {cause.message}" if cause else str(error)) from error

    def _blame(self, error: DagschedError) -> None:
        """Steps without an end yet fail with it: those it names, else all."""
        failure, steps = Failure("refused", str(error)), self.launch.flow.steps
        where = error.where if isinstance(error, InvalidInput) else ""
        named = {name for name in self.launch.group.steps if repr(steps[name].task_id) in where}
        for name in self.launch.group.steps:
            if name in self.follower.feed.steps:
                continue
            if not named or name in named:
                self.follower.take([StepDone(name, "failed", failure=failure)])
            else:
                self.follower.take([StepDone(name, "upstream_failed", reason=f"not run: {error}")])

    def _conclude(self) -> dict[str, Any]:
        ends = self.follower.feed.steps
        missing = [name for name in self.launch.group.steps if name not in ends]
        if missing:
            raise AirflowException(f"the driver program ended without a word on {', '.join(missing)}")
        _raise_for(_bad(ends.values()))
        if all(done.state == "skipped" for done in ends.values()):
            raise AirflowSkipException("every step of the group is skipped")
        self._emit(ends)
        record(self.launch.history, self.launch.flow.conn_id, self.applications)
        return {
            "steps": {name: _measured(done) for name, done in ends.items()},
            "pruned": {name: done.reason for name, done in ends.items() if done.state == "pruned"},
            "applications": self.follower.applications,
            "cuts": self.cuts,
            "left": self.left,
            "predicted_s": round(self.predicted_s, 1),
            "measured_s": round(time.monotonic() - self.began, 1),
        }

    def _emit(self, ends: Mapping[str, StepDone]) -> None:
        """Keep the outlets of what was really written; of what is reused, if no earlier try emitted it."""
        emitted = self.memory.emitted(self.facts.clear_number)
        fresh = {name for name, done in ends.items() if _is_fresh(done, emitted)}
        self.launch.outlets = outlets_of(self.launch.flow, [name for name in self.launch.group.steps if name in fresh])
        self.memory.ended_well(fresh, self.facts.clear_number)


def _is_fresh(done: StepDone, emitted: frozenset[str]) -> bool:
    return done.state == "success" or (done.state == "reused" and done.step not in emitted)


def _follower(launch: LaunchOperator, context: Context, facts: RunFacts) -> Follower:
    ti = context["ti"]

    def publish(done: StepDone) -> None:
        mirror = launch.flow.steps[done.step].task_id
        for key, value in xcoms(done).items():
            XCom.set(key, value, dag_id=ti.dag_id, task_id=mirror, run_id=ti.run_id)

    def started(event: Started) -> None:
        if event.ui:
            ti.xcom_push(key=SparkUiLink().xcom_key, value=event.ui)

    feed = Feed(secrets.token_hex(8), facts.run_started, pruned=launch.flow.pruned, began=time.time())
    follower = Follower(feed, ti.xcom_push, publish, started)
    follower.push()
    return follower


def _bad(ends: Iterable[StepDone]) -> list[StepDone]:
    return [done for done in ends if done.state in ("failed", "upstream_failed")]


def _raise_for(bad: Sequence[StepDone]) -> None:
    """A failed step may be mended by a retry; a step whose upstream failed may not."""
    if not bad:
        return
    text = "; ".join(f"{done.step}: {done.failure.message if done.failure else done.reason}" for done in bad)
    if all(done.state == "upstream_failed" for done in bad):
        raise AirflowFailException(text)
    raise AirflowException(text)


def _measured(done: StepDone) -> dict[str, Any]:
    return {"state": done.state, "rows": done.rows, "bytes": done.bytes, "seconds": done.seconds}


def group_folder(launch: LaunchOperator, facts: RunFacts) -> Path:
    """Folder of what one launch task leaves in one run: another dataflow of the DAG may have a group of that name."""
    root = Path(launch.flow.work_dir.removeprefix("file://"))
    return root / "runs" / facts.dag_id / _safe(facts.run_id) / _safe(str(launch.flow.group_id)) / launch.group.id


def _safe(text: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in text)


def bundle_roots(flow: SparkDataflow, context: Mapping[str, Any]) -> tuple[Path, ...]:
    """Folders whose modules are the author's: the DAG bundle, else the folder of the DAG file."""
    bundle = getattr(context.get("ti"), "bundle_instance", None)
    found = [Path(str(bundle.path))] if bundle is not None else []
    return tuple(dict.fromkeys([*found, Path(flow.dag.fileloc).parent]))
