"""From the cluster as it is to the Spark settings of one group."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.choose import Chosen, choose
from airflow_dagsched.launch.executors import executors
from airflow_dagsched.launch.kubernetes import POD, TEMPLATE
from airflow_dagsched.launch.live.local import is_local
from airflow_dagsched.launch.reserve import FOR_START_S, SETTLE_S, Reservation, reservation
from airflow_dagsched.launch.settings import submission
from airflow_dagsched.launch.standalone import check_offered
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import read
from airflow_dagsched.model.state import with_measured
from airflow_dagsched.plan.check import check
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.provider.history import recall
from airflow_dagsched.provider.reservations import Reservations
from airflow_dagsched.provider.work_dir import default_work_dir

if TYPE_CHECKING:
    from airflow_dagsched.launch.escalation import Level
    from airflow_dagsched.launch.live.kubernetes_objects import Toleration
    from airflow_dagsched.model.dataflow import Dataflow
    from airflow_dagsched.provider.hook import PlannerHook
    from airflow_dagsched.provider.launch import LaunchOperator

log = logging.getLogger(__name__)

ASK_AGAIN_S = 2.0


@dataclass(eq=False)
class Room:
    """What a launch has found for its group, and may have reserved."""

    chosen: Chosen
    reservations: Reservations
    held: Reservation | None = None

    @property
    def predicted_s(self) -> float:
        return self.chosen.group.end_s - self.chosen.group.start_s

    def started(self) -> None:
        """The cluster manager knows of the application: from now on it counts."""
        if self.held is not None:
            with self.reservations.exclusively():
                self.reservations.end(self.held, time.time() + SETTLE_S)

    def leave(self) -> None:
        """The application has ended, or never started."""
        if self.held is not None:
            with self.reservations.exclusively():
                self.reservations.drop(self.held)


@contextmanager
def room_for(launch: LaunchOperator, hook: PlannerHook, level: Level) -> Iterator[Room]:
    """Room for the launch task's group, reserved until the application has started.

    Raises :class:`DoesNotFit`, :class:`LaunchRefused`.
    """
    alone = _alone(launch.graph.dataflow, launch.group.steps)
    dataflow = with_measured(alone, recall(launch.history))
    declared = declared_by(launch.flow.cluster)
    reservations = Reservations(default_work_dir(), hook.master())
    name = f"{launch.dag_id}.{launch.task_id}.{uuid.uuid4().hex}"
    here = is_local(hook.master())
    ask = partial(hook.cluster, declared)
    room = _here(dataflow, ask, reservations) if here else _wait(dataflow, ask, level, reservations, name)
    try:
        _check(launch, room.chosen)
        yield room
    finally:
        room.leave()


def settings_for(
    launch: LaunchOperator, hook: PlannerHook, chosen: Chosen, level: Level, folder: Path
) -> dict[str, str]:
    """Spark settings of the application: the plan's, then the author's; files they name are put into ``folder``.

    Raises :class:`DoesNotFit` for custom resources that no worker offers.
    """
    author = launch.flow.conf
    pod = executor_pod(author.get(TEMPLATE), hook.tolerations()) if chosen.cluster.manager == "kubernetes" else POD
    asked = submission(chosen.group, chosen.cluster, level, exact=chosen.exact, pod=pod)
    conf = {**asked.conf, **author, **written(asked.files, folder)}
    if chosen.cluster.manager == "standalone":
        check_offered(conf, chosen.cluster.workers)
    return conf


def declared_by(author: str | Cluster | None) -> Cluster | None:
    """The author's cluster, if the dataflow names one; raises :class:`InvalidInput`."""
    return author if author is None or isinstance(author, Cluster) else read(Cluster, author)


def _here(dataflow: Dataflow, ask: Callable[[], Cluster], reservations: Reservations) -> Room:
    """On this machine, which nobody shares out."""
    chosen = choose(dataflow, ask())
    assert chosen is not None  # nothing is reserved here
    return Room(chosen, reservations)


def _wait(dataflow: Dataflow, ask: Callable[[], Cluster], level: Level, reservations: Reservations, name: str) -> Room:
    while (room := _find(dataflow, ask, level, reservations, name)) is None:
        log.info("too little is free, or launches that are just starting have reserved it: waiting")
        time.sleep(ASK_AGAIN_S)
    return room


def _find(
    dataflow: Dataflow, ask: Callable[[], Cluster], level: Level, reservations: Reservations, name: str
) -> Room | None:
    """Room, reserved, or None where others have reserved it. Asked while nobody else does: what they have
    reserved, or what the manager counts already, is seen, and never neither.
    """
    with reservations.exclusively():
        now = time.time()
        chosen = choose(dataflow, ask(), reservations.valid(now))
        if chosen is None:
            return None
        if not chosen.exact:
            return Room(chosen, reservations)
        held = reservation(name, executors(chosen.group, chosen.cluster, level), now + FOR_START_S)
        reservations.add(held)
        return Room(chosen, reservations, held)


def _check(launch: LaunchOperator, chosen: Chosen) -> None:
    """One checker accepts every plan before anything is launched; what had to give way is in the log."""
    if chosen.note:
        log.warning("%s", chosen.note)
    violations = check(chosen.plan, chosen.dataflow, chosen.cluster)
    if violations:
        raise LaunchRefused(
            launch.group.id, f"its plan breaks rules: {'; '.join(map(str, violations))}", "please report it"
        )


def executor_pod(path: str | None, tolerations: Sequence[Toleration]) -> Mapping[str, Any]:
    """The author's template of executor pods, or an empty one, with the connection's tolerations."""
    import yaml

    pod = yaml.safe_load(Path(path).read_text("utf-8")) if path else dict(POD)
    spec = pod.get("spec") or {}
    added = msgspec.to_builtins(tolerations)
    return {**pod, "spec": {**spec, "tolerations": [*(spec.get("tolerations") or ()), *added]}}


def written(files: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Setting -> path of the file with its text."""
    paths = {setting: folder / f"{setting.rpartition('.')[2]}.json" for setting in files}
    for setting, path in paths.items():
        path.write_text(files[setting])
    return {setting: str(path) for setting, path in paths.items()}


def _alone(dataflow: Dataflow, steps: tuple[str, ...]) -> Dataflow:
    """The part of ``dataflow`` that is one group: what other groups need is no concern of this launch."""
    inside = set(steps)
    return replace(
        dataflow,
        steps=tuple(step for step in dataflow.steps if step.id in inside),
        channels=tuple(channel for channel in dataflow.channels if {channel.src, channel.dst} <= inside),
        tasks=(),
        dependencies=tuple(edge for edge in dataflow.dependencies if set(edge) <= inside),
    )
