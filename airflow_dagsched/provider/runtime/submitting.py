"""One submit of a try: prepare its steps, ship them, allocate room, follow the application to its end."""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.launch.escalation.levels import choose_next_level
from airflow_dagsched.launch.escalation.split_group import Unit
from airflow_dagsched.launch.escalation.stranded import Stranded, explain_stranded
from airflow_dagsched.launch.history.learning import Ran
from airflow_dagsched.launch.managers.author_sizes import name_options
from airflow_dagsched.launch.managers.executors import size_executors
from airflow_dagsched.launch.managers.parallelism import make_session_settings
from airflow_dagsched.launch.protocol.events import Failure, StepDone
from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.launch.retention.expiry import PRIVATE
from airflow_dagsched.launch.secrecy.java_options import hide_java_options
from airflow_dagsched.launch.secrecy.private_files import check_folder
from airflow_dagsched.launch.steps.outcome import find_hopeless
from airflow_dagsched.launch.steps.pruned import end_uncalled, has_no_rows
from airflow_dagsched.plan.pruning.steps import name_dataset
from airflow_dagsched.provider.following.follower import judge_lost_driver
from airflow_dagsched.provider.following.watching import Watch
from airflow_dagsched.provider.runtime.allocation import (
    Allocation,
    Sized,
    allocate_room,
    keep_plan,
    refuse_broken_manifest,
    refuse_broken_settings,
    size_application,
)
from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.runtime.ends import list_failed
from airflow_dagsched.provider.runtime.folders import make_own_folder
from airflow_dagsched.provider.runtime.keep_warm import make_offer
from airflow_dagsched.provider.runtime.moves import demand_steps, has_taken, offer_while_waiting
from airflow_dagsched.provider.spec.flow_code import digest_ways, recall_same_code
from airflow_dagsched.provider.spec.work_dir import parse_local_root
from airflow_dagsched.provider.submission.input_pruning import Pruning, prune_inputs
from airflow_dagsched.provider.submission.narrow import choose_columns, choose_rows
from airflow_dagsched.provider.submission.secrets import collect_secrets, mask_in_airflow
from airflow_dagsched.provider.submission.shipping import (
    Packed,
    Paths,
    Shipment,
    add_plan,
    build_driver_environment,
    build_shipment,
    store_shipment,
)
from airflow_dagsched.provider.submission.spark_home import check_spark
from airflow_dagsched.provider.submission.spark_submit import ArchiveBroken, check_java
from airflow_dagsched.provider.submission.specs import Parts, Submit, build_parts, render_author_settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """The steps of one submit, as they are in this run."""

    submit: Submit
    parts: Parts
    pruning: Pruning
    settings: Mapping[str, str]
    """The author's Spark settings, rendered."""

    @property
    def named(self) -> dict[str, str]:
        """The same, with those that are given as options of spark-submit."""
        return {**self.settings, **name_options(self.submit.flow.authors_args)}


@contextmanager
def open_paths(attempt: Attempt, targets: Unit) -> Iterator[Paths]:
    """The folders of one submit, the feed's event file among them; the private one goes with it."""
    with tempfile.TemporaryDirectory(prefix=PRIVATE) as private:
        folder = make_own_folder(attempt.folder / _name_folder(attempt, targets), attempt.spec.group.id)
        paths = Paths(folder, Path(private))
        attempt.follower.open(str(paths.events))
        yield paths


def _name_folder(attempt: Attempt, targets: Unit) -> str:
    """Folder of one submit: clear and try, then what else tells it from others of its try."""
    mine, whole = attempt.facts.try_id, len(targets) == len(attempt.steps) > 1
    # A try may submit the same steps again, with more memory or on other workers: each submit has its own event file.
    more = f"x{attempt.level.memory_factor}" if attempt.level.memory_factor > 1 else ""
    again = f"again{attempt.stranded}" if attempt.stranded else ""
    parts = (str(mine.clear_number), str(mine.try_number), more, again, "" if whole else escape_key(targets[0]))
    return "-".join(part for part in parts if part)


def prepare_steps(attempt: Attempt, targets: Unit) -> Prepared:
    """Render calls and settings of the steps, and look at their inputs: what is not needed is left out."""
    submit = _make_submit(attempt, targets)
    parts = build_parts(submit)
    settings = render_author_settings(submit)
    # Before anything is logged of the inputs: a listing's error may quote a setting.
    attempt.follower.masking.add(collect_secrets(settings))
    pruning = prune_inputs(submit, parts, attempt.hook.master, attempt.hook.listing)
    return Prepared(submit, pruning.apply_to_parts(parts), pruning, settings)


def _make_submit(attempt: Attempt, targets: Unit) -> Submit:
    launch, graph = attempt.launch, attempt.flow.graph
    feeds = [*attempt.facts.feeds.values(), attempt.follower.feed]
    done = {name: end for feed in feeds for name, end in feed.steps.items()}
    env, ways = launch.get_template_env(), digest_ways(attempt.flow)
    known = recall_same_code(attempt.flow, attempt.hook.history, ways)
    return Submit(
        attempt.flow,
        targets,
        attempt.facts,
        render=lambda value: launch.render_template(value, attempt.context, env),
        roots=attempt.roots,
        states={name: end.state for name, end in done.items()},
        datasets={f"{name}/{output}": path for name, end in done.items() for output, path in end.datasets.items()},
        empty=frozenset(
            name_dataset(output.step, output.name)
            for outputs in graph.inputs.values()
            for output in outputs
            if output.step in done and has_no_rows(done[output.step])
        ),
        ways=ways,
        narrow={} if attempt.is_per_step else choose_columns(attempt.flow, known),
        where={} if attempt.is_per_step else choose_rows(attempt.flow, known),
    )


def end_without_running(prepared: Prepared) -> tuple[StepDone, ...]:
    """The ends of the steps where none of them is called: because of what is above them, or of what is not."""
    targets = prepared.submit.targets
    mine = [spec for spec in prepared.parts.specs if spec.id in targets]
    ends = {**end_uncalled(mine), **find_hopeless(mine)}
    if len(ends) < len(targets):
        return ()
    for done in ends.values():
        log.info("%s: %s: %s", done.step, done.state, done.reason)
    return tuple(ends.values())


def ship_steps(attempt: Attempt, prepared: Prepared, paths: Paths) -> Shipment:
    """Manifest and calls for the driver program. What is secret in them is masked in Airflow's log from now on."""
    masking = attempt.follower.masking
    shipment = build_shipment(prepared.submit, prepared.parts, attempt.spec.group.id, paths, masking)
    mask_in_airflow(masking.known)
    return shipment


def list_session_settings(prepared: Prepared) -> dict[str, dict[str, str]]:
    """Step -> SQL settings of its session, of those that declare how parallel they are."""
    steps = prepared.submit.flow.steps
    declared = {spec.id: steps[spec.id].declared.parallelism for spec in prepared.parts.specs}
    told = {step: make_session_settings(count, prepared.settings) for step, count in declared.items()}
    return {step: settings for step, settings in told.items() if settings}


@contextmanager
def allocate(attempt: Attempt, prepared: Prepared) -> Iterator[Allocation]:
    """Room on the cluster for what pruning leaves, as one application.

    Raises :class:`LaunchRefused`, :class:`DoesNotFit`. What can be refused without the cluster is refused first:
    nobody shall wait for room to hear that there is no Java.
    """
    group = attempt.spec.group.id
    attempt.hook.check_connection(group)
    check_java(group)
    check_spark(group, attempt.launch.spark_submit)
    pruning, targets = prepared.pruning, prepared.submit.targets
    attempt.pruning = pruning
    level, hook = attempt.level, attempt.hook
    on_wait, per_step = partial(offer_while_waiting, attempt, targets), attempt.is_per_step
    room = allocate_room(
        attempt.planned, hook, level, targets, pruning, author=prepared.named, per_step=per_step, on_wait=on_wait
    )
    with room as allocation:
        demand_steps(attempt, targets)
        yield allocation


def submit_and_follow(
    attempt: Attempt, prepared: Prepared, shipment: Shipment, paths: Paths, allocation: Allocation
) -> None:
    """One spark-submit, to its end. Raises what Airflow is to know of one that failed; ``Stranded``,
    ``ArchiveBroken`` where another one is to follow.
    """
    check_folder(paths.folder, parse_local_root(attempt.flow.work_dir), attempt.spec.group.id)
    keep_plan(allocation.chosen, paths.folder)
    planned = size_application(prepared.named, attempt.hook, allocation.chosen, attempt.level, paths.private)
    attempt.predicted_s += planned.predicted_s
    attempt.work = msgspec.to_builtins(allocation.chosen.planned.plan.work)
    # Only now: the order, the slots and the moments of its steps are those of the plan it has room by.
    shipment = add_plan(shipment, allocation.chosen.group, list_session_settings(prepared))
    refuse_broken_manifest(allocation.chosen, shipment.manifest)
    packed = shipment.pack()
    began = time.monotonic()
    named = frozenset(prepared.named)

    def look_at(conf: Mapping[str, str], more: frozenset[str]) -> None:
        refuse_broken_settings(allocation.chosen, attempt.level.memory_factor, conf, named | more)

    if _has_ended_well(attempt, planned.conf, packed, paths, allocation, look_at):
        attempt.applications.append(_measure_application(attempt, prepared.submit, planned, began))


def _has_ended_well(
    attempt: Attempt,
    conf: dict[str, str],
    packed: Packed,
    paths: Paths,
    allocation: Allocation,
    look_at: Callable[[Mapping[str, str], frozenset[str]], None],
) -> bool:
    """Whether the application, submitted here, ended well; False where a step of it failed by itself."""
    watch, nonce = _make_watch(attempt, conf, allocation.chosen), secrets.token_hex(16)
    conf, java = hide_java_options(conf, attempt.follower.masking, os.environ)
    store_shipment(packed, paths)
    # Now, and once more when it has ended: a worker that stood still may have lost its task meanwhile, and what a
    # superseded try says would mix with what its successor does.
    attempt.standing.demand()
    failed = None
    try:
        attempt.launch.submit(
            attempt.context,
            conf=conf,
            arguments=[str(paths.manifest)],
            env={**build_driver_environment(nonce, attempt.roots, packed, paths), **java},
            on_settings=look_at,
            on_line=lambda line: _take_line(attempt, nonce, line, allocation, watch),
            offer=make_offer(attempt, allocation),
        )
    except AirflowException as error:
        failed = error
    attempt.standing.demand()
    if isinstance(failed, ArchiveBroken) and not attempt.launch.stopped:
        raise failed
    attempt.follower.catch_up()  # its last lines may not have come through a pipe that broke with it
    # It was stopped by us: what spark-submit says of its end is no cause.
    if failed is not None and watch.stranded and not attempt.launch.stopped:
        raise Stranded(watch.stranded)
    if failed is not None:
        _raise_failure(attempt, failed)
    return failed is None


def _take_line(attempt: Attempt, nonce: str, line: str, allocation: Allocation, watch: Watch) -> str | None:
    """Take in a line of the driver's output; once the application has started, its cluster counts it. Returns what of
    it is to be logged.
    """
    follower = attempt.follower
    before = follower.applications
    taken = follower.line(nonce, line)
    if follower.applications > before:
        allocation.note_start()
    watch.look(follower.executors, time.monotonic())
    if attempt.standing.lost and not attempt.launch.stopped:
        attempt.launch.on_kill()  # for good: another try is at work
    return None if taken else follower.masking.text(line)


def _make_watch(attempt: Attempt, conf: Mapping[str, str], chosen: Chosen) -> Watch:
    """Over an application submitted with ``conf``."""
    asked = size_executors(chosen.group, chosen.planned.cluster, attempt.level.memory_factor)
    declared = attempt.flow.declared_cluster
    return Watch(
        attempt.hook.executor_within_s,
        lambda: explain_stranded(chosen, asked, conf, attempt.hook.cluster(declared)),
        attempt.launch.end_submit,
    )


def _measure_application(attempt: Attempt, submit: Submit, planned: Sized, began: float) -> Ran:
    """What is to be learned of an application that was submitted at ``began`` and has ended."""
    ends, begun, targets = attempt.follower.feed.steps, attempt.follower.begun, submit.targets
    # what was enough, after the plan's was not
    more = dict.fromkeys(targets, planned.memory_mb) if attempt.level.memory_factor > 1 else {}
    return Ran(
        seconds=time.monotonic() - began,
        cores=planned.cores,
        ends=tuple(ends[name] for name in targets if name in ends),
        begun={name: begun[name] - began for name in targets if name in begun},
        wanted=planned.wanted,
        warm=(attempt.follower.warm_run or 1) > 1,
        memory_mb=more,
        codes=submit.ways,
        columns_read=tuple(attempt.follower.columns_read),
    )


def _raise_failure(attempt: Attempt, error: AirflowException) -> None:
    """A driver that said why it failed is judged by that; one that was lost, here. Where its steps failed by
    themselves nothing is raised: what others of the group have to say comes first.
    """
    follower, memory = attempt.follower, attempt.memory
    ends = follower.feed.steps
    bad = list_failed(ends[name] for name in attempt.own if name in ends)
    failure = follower.finished.failure if follower.finished else judge_lost_driver(str(error))
    if has_taken(attempt) and _may_be_of_taken(failure, bad, list_failed(ends.values())):
        raise AirflowException(str(error)) from error  # it is tried again without what was taken
    # A step that was taken, and failed by itself, is left to its own launch task.
    if has_taken(attempt) and not bad:
        return
    cause = failure or next((done.failure for done in bad if done.failure), None)
    # Java that runs out of memory stops anyhow it likes, often without a word but the one in its output.
    is_java_gone = cause is not None and (cause.kind == "lost_driver" or follower.is_java_ending)
    if is_java_gone and follower.ran_out_of_memory:
        cause = Failure("out_of_memory", "the driver program ran out of memory: it gets more of it")
    level = memory.level
    if cause is not None:
        memory.remember_level(level=choose_next_level(level, cause.kind))
    if cause is not None and cause.kind == "refused":
        raise AirflowFailException(cause.message) from error
    if failure is not None or not bad or memory.level > level:
        raise AirflowException(f"{cause.kind}: {cause.message}" if cause else str(error)) from error


def _may_be_of_taken(failure: Failure | None, own: Sequence[StepDone], all_bad: Sequence[StepDone]) -> bool:
    """Whether the application, or a step of its own, may have failed because of steps of others in it."""
    by_itself = all(done.failure is None or done.failure.kind == "author" for done in own)
    return failure is not None or not all_bad or not by_itself
