"""From the cluster as it is to the Spark settings of one application."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.checking import Submitted, check_sent, check_submitted
from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen, NoRoomYet, plan_on_free_cluster
from airflow_dagsched.launch.escalation.reservations import FOR_START_S, SETTLE_S, Reservation, reserve_executors
from airflow_dagsched.launch.escalation.split_group import find_parts_for_now
from airflow_dagsched.launch.managers.author_sizes import settle_settings, size_as_submitted
from airflow_dagsched.launch.managers.executors import Executors, size_executors
from airflow_dagsched.launch.managers.kubernetes.submit import POD, TEMPLATE
from airflow_dagsched.launch.managers.local.live import is_local
from airflow_dagsched.launch.managers.parallelism import find_task_cores
from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.launch.managers.standalone.submit import check_offered
from airflow_dagsched.launch.planning.facts import Facts, add_inputs
from airflow_dagsched.launch.planning.submissions import add_settings
from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.report.certainty import say_known
from airflow_dagsched.plan.report.page import write_pruning
from airflow_dagsched.provider.clusters.plan_facts import gather_plan_facts
from airflow_dagsched.provider.clusters.reservations import Reservations
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir
from airflow_dagsched.provider.submission.input_pruning import Pruning

if TYPE_CHECKING:
    from airflow_dagsched.launch.escalation.levels import Level
    from airflow_dagsched.launch.managers.kubernetes.objects import Toleration
    from airflow_dagsched.launch.protocol.manifest import Manifest
    from airflow_dagsched.model.cluster import Cluster
    from airflow_dagsched.plan.checking.facts.plan_facts import Violation
    from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec

log = logging.getLogger(__name__)

ASK_AGAIN_S = 2.0
NOTHING_SET: Mapping[str, str] = MappingProxyType({})


@dataclass(eq=False)
class Allocation:
    """What a launch has found for its group, and may have reserved."""

    chosen: Chosen
    reservations: Reservations
    held: Reservation | None = None

    def note_start(self) -> None:
        """The cluster manager knows of the application: from now on it counts."""
        if self.held is not None:
            with self.reservations.hold_lock():
                self.reservations.end(self.held, time.time() + SETTLE_S)  # for as long as the manager needs to count it

    def release(self) -> None:
        """The application has ended, or never started."""
        if self.held is not None:
            with self.reservations.hold_lock():
                self.reservations.drop(self.held)


@dataclass(frozen=True, slots=True)
class Sized:
    """What one application gets, and what it is predicted to take."""

    conf: dict[str, str]
    predicted_s: float
    cores: int
    wanted: dict[str, int]
    """Cores that the instances of each step want together."""
    memory_mb: int
    """What each instance has, if as many run as can."""


@contextmanager
def allocate_room(
    launch: LaunchSpec,
    hook: PlannerHook,
    level: Level,
    steps: Sequence[str],
    pruning: Pruning | None,
    *,
    author: Mapping[str, str] = NOTHING_SET,
    per_step: bool = False,
    on_wait: Callable[[], None] = lambda: None,
) -> Iterator[Allocation]:
    """Allocation for what ``pruning`` leaves of ``steps`` as one application, reserved until it has started.

    :param pruning: None: nothing is known of their inputs.
    :param author: Spark settings that win over the plan's: executors are reserved as they size them.
    :param on_wait: called again and again while there is no room; what it raises ends the waiting.

    Raises :class:`DoesNotFit`, :class:`LaunchRefused`.
    """
    reservations = Reservations(find_default_work_dir(), hook.master())
    ask = partial(gather_facts_of_run, launch, hook, level, pruning, per_step=per_step)
    if is_local(hook.master()):
        room = _allocate_here(ask(), steps, reservations)
    else:
        # Unique: a reservation replaces one of its name, and a frozen worker's try may still hold its own.
        name = f"{launch.flow.dag_id}.{launch.task_id}.{uuid.uuid4().hex}"
        room = _wait_for_room(ask, steps, partial(size_asked, author, level), reservations, name, on_wait)
    try:
        _check_plan(launch, room.chosen)
        yield room
    finally:
        room.release()


def gather_facts_of_run(
    launch: LaunchSpec, hook: PlannerHook, level: Level, pruning: Pruning | None = None, *, per_step: bool = False
) -> Facts:
    """What the run is planned with as a launch of it begins: as a command gathers it, and what is known of inputs."""
    found = hook.find_cluster(launch.flow.declared_cluster)
    facts = gather_plan_facts(launch, found, launch.flow.conn_id, per_step=per_step, history=hook.history)
    wanted = replace(facts.settings, slots=1) if level.one_at_a_time else facts.settings
    facts = replace(facts, settings=wanted)
    return facts if pruning is None else add_inputs(facts, pruning.dataflow, pruning.asked, pruning.selections)


def size_application(author: Mapping[str, str], hook: PlannerHook, chosen: Chosen, level: Level, folder: Path) -> Sized:
    """The application as chosen: the plan's Spark settings, then the author's; files they name are put into ``folder``.

    Raises :class:`DoesNotFit` for custom resources that no worker offers.
    """
    planned, group = chosen.planned, chosen.group
    manager, steps = planned.cluster.manager, [step for step in planned.dataflow.steps if step.id in group.steps]
    pod = build_executor_pod(author.get(TEMPLATE), hook.tolerations()) if manager == "kubernetes" else POD
    asked = make_submission(
        group,
        planned.cluster,
        level.memory_factor,
        exact=chosen.exact,
        pod=pod,
        task_cores=find_task_cores(group, planned.dataflow),
        settings=planned.settings,
    )
    executors = size_executors(group, planned.cluster, level.memory_factor, planned.settings)
    settled = settle_settings(asked.conf, author, executors, manager)
    # The author's before the plan's. The pod template is the author's own, with what the plan adds: its path comes
    # last.
    conf = {**settled, **author, **write_files(asked.files, folder)}
    if manager == "standalone":  # a Master refuses nothing: it would let the application wait for ever
        check_offered(conf, planned.cluster.workers)
    containers = group.containers
    submitted = size_as_submitted(executors, author, manager)
    return Sized(
        conf=conf,
        predicted_s=group.end_s - group.start_s,
        cores=submitted.cores * submitted.count if manager != "local" else containers[0].cores,
        wanted={step.id: step.cores * step.parallelism for step in steps},
        # As many instances as an executor's cores allow share its heap.
        memory_mb=_read_heap_mb(asked.conf) // max(1, containers[0].cores // min(step.cores for step in steps)),
    )


def keep_plan(chosen: Chosen, folder: Path) -> None:
    """Put the plan beside the manifest: what was launched can be compared with what is printed, and checked."""
    write_file(folder / "plan.json", encode_value(add_settings(chosen.planned)), 0o644)


def _read_heap_mb(planned: Mapping[str, str]) -> int:
    """Of an executor; a local application's is its driver's."""
    return int(planned.get("spark.executor.memory", planned["spark.driver.memory"]).removesuffix("m"))


def _allocate_here(known: Facts, steps: Sequence[str], reservations: Reservations) -> Allocation:
    """On this machine, which nobody shares out."""
    chosen = plan_on_free_cluster(known, steps)
    assert isinstance(chosen, Chosen)  # nothing is reserved here
    return Allocation(chosen, reservations)


def size_asked(author: Mapping[str, str], level: Level, chosen: Chosen) -> Executors:
    """The executors that its cluster manager is asked for.

    :param author: Spark settings that win over the plan's.
    """
    cluster = chosen.planned.cluster
    planned = size_executors(chosen.group, cluster, level.memory_factor, chosen.planned.settings)
    return size_as_submitted(planned, author, cluster.manager)


def _wait_for_room(
    ask: Callable[[], Facts],
    steps: Sequence[str],
    size: Callable[[Chosen], Executors],
    reservations: Reservations,
    name: str,
    on_wait: Callable[[], None],
) -> Allocation:
    looked_at: Cluster | None = None
    while isinstance(found := _find_room(ask, steps, size, reservations, name), NoRoomYet):
        # What is free has not changed since: parts fit no better.
        if found.facts.cluster != looked_at and not found.is_short:
            _look_for_parts(found, steps)
            looked_at = found.facts.cluster
        on_wait()
        log.info("too little is free, or launches that are just starting have reserved it: waiting")
        # As long as it takes: the author's execution_timeout is the limit, if there is one.
        time.sleep(ASK_AGAIN_S)
    return found


def _look_for_parts(lacking: NoRoomYet, steps: Sequence[str]) -> None:
    """Raises ``RunsInParts`` where to run in parts now is hardly worse than to wait."""
    found = find_parts_for_now(lacking.facts, steps, lacking.whole_s)
    if found is not None:
        raise found


def _find_room(
    ask: Callable[[], Facts],
    steps: Sequence[str],
    size: Callable[[Chosen], Executors],
    reservations: Reservations,
    name: str,
) -> Allocation | NoRoomYet:
    """Room, reserved, or what there is too little of."""
    # Asked while nobody else does: what they have reserved, or what the manager counts already, is seen, and never
    # neither.
    with reservations.hold_lock():
        now = time.time()
        chosen = plan_on_free_cluster(ask(), steps, reservations.list_valid(now))
        if isinstance(chosen, NoRoomYet):
            return chosen
        # Executors may land anywhere: there is nothing on a certain worker to reserve.
        if not chosen.exact:
            return Allocation(chosen, reservations)
        held = reserve_executors(name, size(chosen), now + FOR_START_S)
        reservations.add(held)
        return Allocation(chosen, reservations, held)


def _check_plan(launch: LaunchSpec, chosen: Chosen) -> None:
    """One checker accepts every plan before anything is launched; what gave way or is left out is in the log."""
    if chosen.note:
        log.warning("%s", chosen.note)
    if chosen.planned.plan.work is not None:
        log.info("%s", say_known(chosen.planned.plan.work))
    for line in write_pruning(chosen.group):
        log.info("%s", line)
    # By code that shares nothing with the planner: a plan that lost a step must not be what runs.
    planned = chosen.planned
    violations = check(planned.plan, planned.dataflow, planned.cluster, planned.settings)
    if violations:
        raise LaunchRefused(
            launch.group.id, f"its plan breaks rules: {'; '.join(map(str, violations))}", "please report it"
        )


def refuse_broken_settings(chosen: Chosen, memory_factor: int, conf: Mapping[str, str], author: frozenset[str]) -> None:
    """The last look at what spark-submit is given, by code that shares nothing with what made it.

    :param author: settings that are the author's word. Raises :class:`LaunchRefused`.
    """
    planned, template = chosen.planned, conf.get(TEMPLATE, "")
    pod = Path(template).read_text("utf-8") if planned.cluster.manager == "kubernetes" and template else ""
    violations = check_submitted(
        Submitted(
            chosen.group, planned.cluster, planned.settings, conf, author, chosen.exact, memory_factor, pod_template=pod
        )
    )
    _refuse(chosen, violations)


def refuse_broken_manifest(chosen: Chosen, manifest: Manifest) -> None:
    """The last look at what the driver is told of the group's inside. Raises :class:`LaunchRefused`."""
    _refuse(chosen, check_sent(chosen.group, manifest.targets, manifest.order, manifest.slots))


def _refuse(chosen: Chosen, violations: Sequence[Violation]) -> None:
    if violations:
        broken = "; ".join(map(str, violations))
        raise LaunchRefused(chosen.group.id, f"what is submitted breaks the plan: {broken}", "please report it")


def build_executor_pod(path: str | None, tolerations: Sequence[Toleration]) -> Mapping[str, Any]:
    """The author's template of executor pods, or an empty one, with the connection's tolerations."""
    import yaml

    pod = yaml.safe_load(Path(path).read_text("utf-8")) if path else dict(POD)
    spec = pod.get("spec") or {}
    added = msgspec.to_builtins(tolerations)
    return {**pod, "spec": {**spec, "tolerations": [*(spec.get("tolerations") or ()), *added]}}


def write_files(files: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Setting -> path of the file with its text."""
    paths = {setting: folder / f"{setting.rpartition('.')[2]}.json" for setting in files}
    for setting, path in paths.items():
        write_file(path, files[setting].encode(), 0o600)
    return {setting: str(path) for setting, path in paths.items()}
