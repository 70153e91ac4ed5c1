"""One try of a launch task: facts, decision, apply.

:func:`~airflow_dagsched.provider.runtime.run_facts.gather_run_facts` asks Airflow what there is to know,
:meth:`GroupRun.submits` decides what is submitted, the rest submits it, follows it and concludes.
"""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, AirflowTaskTimeout

from airflow_dagsched.errors import DagschedError, DoesNotFit, InvalidInput, LaunchRefused
from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.launch.escalation.levels import LEVELS, Level, choose_next_level
from airflow_dagsched.launch.escalation.overtime import end_overtime_steps, explain_timeout
from airflow_dagsched.launch.escalation.split_group import Unit, cut_to_fit, split_in_halves
from airflow_dagsched.launch.escalation.stranded import Stranded, explain_stranded
from airflow_dagsched.launch.history.learning import Ran
from airflow_dagsched.launch.managers.executors import size_executors
from airflow_dagsched.launch.protocol.events import Failure, StepDone
from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.launch.retention.expiry import PRIVATE
from airflow_dagsched.launch.secrecy.java_options import hide_java_options
from airflow_dagsched.launch.steps.outcome import find_hopeless
from airflow_dagsched.launch.steps.pruned import end_uncalled, has_no_rows
from airflow_dagsched.plan.pruning.steps import name_dataset
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.following.follower import Follower, judge_lost_driver
from airflow_dagsched.provider.following.reporting import open_follower
from airflow_dagsched.provider.following.standing import Standing, Superseded, make_standing, make_unrivalled
from airflow_dagsched.provider.following.watching import Watch
from airflow_dagsched.provider.runtime.allocation import Room, Sized, allocate_room, gather_group_fit, size_application
from airflow_dagsched.provider.runtime.ends import is_fresh, list_failed, raise_for, report_measured
from airflow_dagsched.provider.runtime.folders import list_bundle_roots, locate_group_folder, make_own_folder
from airflow_dagsched.provider.runtime.foresight import foretell_rest
from airflow_dagsched.provider.runtime.history import record_applications
from airflow_dagsched.provider.runtime.input_pruning import Pruning, prune_inputs
from airflow_dagsched.provider.runtime.memory import Memory
from airflow_dagsched.provider.runtime.run_facts import RunFacts, gather_run_facts
from airflow_dagsched.provider.runtime.shipping import (
    Paths,
    Shipment,
    build_driver_environment,
    build_shipment,
    store_shipment,
)
from airflow_dagsched.provider.runtime.specs import Submit, build_parts, render_author_settings
from airflow_dagsched.provider.spec.configuration import is_planning
from airflow_dagsched.provider.spec.work_dir import parse_local_root
from airflow_dagsched.provider.submission.private import check_folder
from airflow_dagsched.provider.submission.secrets import collect_secrets, mask_in_airflow, read_airflow_secrets
from airflow_dagsched.provider.submission.spark_home import check_spark
from airflow_dagsched.provider.submission.spark_submit import check_java
from airflow_dagsched.provider.wiring.outlets import list_outlets

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.wiring.launch import LaunchOperator

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
    standing: Standing = field(default_factory=make_unrivalled)

    @classmethod
    def of(cls, launch: LaunchOperator, context: Context) -> GroupRun:
        """Gather the facts and open the feed."""
        facts = gather_run_facts(launch, context)
        folder = locate_group_folder(launch, facts)
        standing = make_standing(launch, context["ti"], facts.try_id)
        follower = open_follower(launch, context, facts, standing)
        roots = list_bundle_roots(launch.flow, context)
        return cls(launch, context, facts, follower, Memory(folder), folder, roots, standing=standing)

    @property
    def level(self) -> Level:
        return LEVELS[self.memory.level]

    @cached_property
    def hook(self) -> PlannerHook:
        return PlannerHook(self.launch.flow.conn_id)

    def execute(self) -> dict[str, Any]:
        """Submit what there is to submit, tell the mirrors, return what was measured."""
        try:
            self.left = foretell_rest(self.launch, self.facts, self.hook, self.folder.parent)
            self._run_submits()
        except DagschedError as error:
            masking = self.follower.masking
            masking.add(read_airflow_secrets())
            self._blame_steps(error)
            log.debug("why the launch is refused", exc_info=True)
            passing = isinstance(error, Superseded) or (isinstance(error, LaunchRefused) and error.passing)
            raise (AirflowException if passing else AirflowFailException)(masking.text(str(error))) from None
        except AirflowTaskTimeout:
            raise AirflowTaskTimeout(self._stop_overtime()) from None
        finally:
            self.follower.close()
        return self._conclude_group()

    def _run_submits(self) -> None:
        """Once; where memory runs out again, with more of it, and in smaller parts."""
        while True:
            level = self.memory.level
            try:
                for targets in self.list_submits():
                    self._run_targets(targets)
                return
            except AirflowException as error:
                if self.memory.level == level or self.launch.stopped:
                    raise
                log.warning("%s", error)
            self._note_cut(f"out of memory: tried again with {self.level}")
            self.follower.forget_failed()

    def list_submits(self) -> tuple[Unit, ...]:
        """The steps of each submit, in order: all of the group in one, or as the level and the author ask for."""
        units = self._list_units(self.launch.group.steps)
        if self.level.per_step or self._is_per_step():
            return units
        return split_in_halves(units) if self.level.halved else (tuple(chain.from_iterable(units)),)

    def _list_units(self, steps: Iterable[str]) -> tuple[Unit, ...]:
        """``steps`` in topological order, a repeat block whole."""
        inside, blocks = set(steps), self.launch.flow.blocks()
        ordered = (name for name in self.launch.graph.sort_steps() if name in inside)
        return tuple(dict.fromkeys(blocks.get(name, (name,)) for name in ordered))

    def _is_per_step(self) -> bool:
        asked = (self.facts.conf.get("dagsched") or {}).get("run", self.launch.flow.run)
        return asked == "per_step" or not is_planning()

    def _run_targets(self, targets: Unit) -> None:
        """One application; several, one after another, where the cluster is too small for that; again, where it was
        left without workers.
        """
        try:
            self._run_as_one(targets)
        except DoesNotFit as refused:
            parts = cut_to_fit(self._list_units(targets), gather_group_fit(self.launch, self.hook, self.level))
            if len(parts) == 1:
                raise
            self._note_cut(f"cut into {len(parts)} applications, one after another: {refused}")
            for part in parts:
                self._run_targets(part)
        except Stranded as found:
            self._note_cut(str(found))
            self.stranded += 1
            self.follower.forget_failed()
            self._run_targets(targets)

    def _note_cut(self, why: str) -> None:
        """Say, in the log and in what the launch task returns, why there are more applications than groups."""
        shown = self.follower.masking.text(why)
        log.warning("%s: %s", self.launch.group.id, shown)
        self.cuts.append(shown)

    def _run_as_one(self, targets: Unit) -> None:
        with tempfile.TemporaryDirectory(prefix=PRIVATE) as private:
            folder = make_own_folder(self.folder / self._name(targets), self.launch.group.id)
            self._prepare_submit(targets, Paths(folder, Path(private)))

    def _prepare_submit(self, targets: Unit, paths: Paths) -> None:
        """Submit the steps, unless none of them is called: because of what is above them, or of what is not."""
        self.follower.open(str(paths.events))
        submit = self._make_submit(targets)
        parts = build_parts(submit)
        author = render_author_settings(submit)
        self.follower.masking.add(collect_secrets(author))
        pruning = prune_inputs(submit, parts, self.hook.master, self.hook.listing)
        parts = pruning.apply_to_parts(parts)
        mine = [spec for spec in parts.specs if spec.id in targets]
        without = {**end_uncalled(mine), **find_hopeless(mine)}
        if len(without) < len(targets):
            slots = 1 if self.level.one_at_a_time else self.launch.flow.slots
            shipment = build_shipment(
                submit, parts, self.launch.group.id, paths, slots=slots, masking=self.follower.masking
            )
            mask_in_airflow(self.follower.masking.known)
            self._allocate_and_submit(targets, shipment, paths, pruning, author)
            return
        for done in without.values():
            log.info("%s: %s: %s", done.step, done.state, done.reason)
        self.follower.take(without.values())

    def _name(self, targets: Unit) -> str:
        """Folder of one submit: clear and try, then what else tells it from others of its try."""
        mine, whole = self.facts.try_id, len(targets) == len(self.launch.group.steps) > 1
        more = f"x{self.level.memory_factor}" if self.level.memory_factor > 1 else ""
        again = f"again{self.stranded}" if self.stranded else ""
        parts = (str(mine.clear_number), str(mine.try_number), more, again, "" if whole else escape_key(targets[0]))
        return "-".join(part for part in parts if part)

    def _make_submit(self, targets: tuple[str, ...]) -> Submit:
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
                name_dataset(output.step, output.name)
                for outputs in launch.graph.inputs.values()
                for output in outputs
                if output.step in done and has_no_rows(done[output.step])
            ),
        )

    def _allocate_and_submit(
        self, targets: Unit, shipment: Shipment, paths: Paths, pruning: Pruning, author: Mapping[str, str]
    ) -> None:
        launch = self.launch
        self.hook.check_connection(launch.group.id)
        check_java(launch.group.id)
        check_spark(launch.group.id, launch.spark_submit)
        with allocate_room(launch, self.hook, self.level, targets, pruning) as room:
            check_folder(paths.folder, parse_local_root(launch.flow.work_dir), launch.group.id)
            planned = size_application(author, self.hook, room.chosen, self.level, paths.private)
            self.predicted_s += planned.predicted_s
            began = time.monotonic()
            if self._submit_and_follow(planned.conf, shipment, paths, room):
                self.applications.append(self._measure_application(targets, planned, began))

    def _submit_and_follow(self, conf: dict[str, str], shipment: Shipment, paths: Paths, room: Room) -> bool:
        """Whether the application ended well; raises what Airflow is to know of one that did not, and ``Stranded``."""
        watch, nonce = self._make_watch(conf, room.chosen), secrets.token_hex(16)
        conf, java = hide_java_options(conf, self.follower.masking, os.environ)
        store_shipment(shipment, paths)
        self.standing.demand()
        failed = None
        try:
            self.launch.submit(
                self.context,
                conf=conf,
                arguments=[str(paths.manifest)],
                env={**build_driver_environment(nonce, self.roots, shipment, paths), **java},
                on_line=lambda line: self._take_line(nonce, line, room, watch),
            )
        except AirflowException as error:
            failed = error
        self.standing.demand()
        self.follower.catch_up()
        if failed is not None and watch.stranded and not self.launch.stopped:
            raise Stranded(watch.stranded)
        if failed is not None:
            self._raise_failure(failed)
        return failed is None

    def _take_line(self, nonce: str, line: str, room: Room, watch: Watch) -> str | None:
        """Take in a line of the driver's output; once the application has started, its cluster counts it. Returns
        what of it is to be logged.
        """
        before = self.follower.applications
        taken = self.follower.line(nonce, line)
        if self.follower.applications > before:
            room.started()
        watch.look(self.follower.executors, time.monotonic())
        if self.standing.lost and not self.launch.stopped:
            self.launch.on_kill()
        return None if taken else self.follower.masking.text(line)

    def _make_watch(self, conf: Mapping[str, str], chosen: Chosen) -> Watch:
        """Over an application submitted with ``conf``."""
        asked = size_executors(chosen.group, chosen.cluster, self.level.memory_factor)
        declared = self.launch.flow.declared_cluster
        return Watch(
            self.hook.executor_within_s,
            lambda: explain_stranded(chosen, asked, conf, self.hook.cluster(declared)),
            self.launch.end_submit,
        )

    def _measure_application(self, targets: Unit, planned: Sized, began: float) -> Ran:
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

    def _raise_failure(self, error: AirflowException) -> None:
        """A driver that said why it failed is judged by that; one that was lost, here."""
        finished = self.follower.finished
        bad = list_failed(self.follower.feed.steps.values())
        failure = finished.failure if finished else judge_lost_driver(str(error))
        cause = failure or next((done.failure for done in bad if done.failure), None)
        if cause is not None and cause.kind == "lost_driver" and self.follower.ran_out_of_memory:
            cause = Failure("out_of_memory", "the driver program ran out of memory: it gets more of it")
        level = self.memory.level
        if cause is not None:
            self.memory.remember_level(level=choose_next_level(level, cause.kind))
        if cause is not None and cause.kind == "refused":
            raise AirflowFailException(cause.message) from error
        if failure is not None or not bad or self.memory.level > level:
            raise AirflowException(f"{cause.kind}: {cause.message}" if cause else str(error)) from error

    def _blame_steps(self, error: DagschedError) -> None:
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

    def _stop_overtime(self) -> str:
        """Stop the application, which says what its steps wait for; they end with that. Why the launch ends, too."""
        self.launch.end_submit()
        self.follower.catch_up()
        timeout, stalls = self.launch.execution_timeout, dict(self.follower.stalls)
        limit_s = timeout.total_seconds() if timeout else 0.0
        self.follower.take(end_overtime_steps(self.launch.group.steps, self.follower.feed, limit_s, stalls))
        return explain_timeout(limit_s, stalls)

    def _conclude_group(self) -> dict[str, Any]:
        self.standing.demand()
        ends = self.follower.feed.steps
        missing = [name for name in self.launch.group.steps if name not in ends]
        if missing:
            raise AirflowException(f"the driver program ended without a word on {', '.join(missing)}")
        raise_for(list_failed(ends.values()))
        if not self.follower.told:
            raise AirflowException("Airflow did not take the last word on the steps: a retry says it, and runs nothing")
        if all(done.state == "skipped" for done in ends.values()):
            raise AirflowSkipException("every step of the group is skipped")
        self._emit_outlets(ends)
        record_applications(self.launch.history, self.launch.flow.conn_id, self.applications)
        return {
            "steps": {name: report_measured(done) for name, done in ends.items()},
            "pruned": {name: done.reason for name, done in ends.items() if done.state == "pruned"},
            "applications": self.follower.applications,
            "cuts": self.cuts,
            "left": self.left,
            "predicted_s": round(self.predicted_s, 1),
            "measured_s": round(time.monotonic() - self.began, 1),
        }

    def _emit_outlets(self, ends: Mapping[str, StepDone]) -> None:
        """Keep the outlets of what was really written; of what is reused, if no earlier try emitted it."""
        emitted = self.memory.emitted(self.facts.try_id.clear_number)
        fresh = {name for name, done in ends.items() if is_fresh(done, emitted)}
        self.launch.outlets = list_outlets(
            self.launch.flow, [name for name in self.launch.group.steps if name in fresh]
        )
        self.memory.note_good_end(fresh, self.facts.try_id.clear_number)
