"""Where an epoch's graph gets its executors: in an application that runs already, then nobody is to start another for
it, or in one of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.launch.managers.executors import Executors
from airflow_dagsched.launch.managers.standalone.submit import TOKENS
from airflow_dagsched.launch.streams.difference import needs_application
from airflow_dagsched.launch.streams.manifest import StreamManifest
from airflow_dagsched.launch.streams.private_folder import drop_settings, read_settings
from airflow_dagsched.provider.clusters.reservations import Reservations
from airflow_dagsched.provider.runtime.allocation import Allocation, allocate_room, size_application, size_asked
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir
from airflow_dagsched.provider.streaming.prepare_epoch import (
    LEVEL,
    Rendered,
    has_inbox_service,
    make_manifest,
    settle_conf,
)
from airflow_dagsched.provider.streaming.relocation.lags import assume_caught_up, tell_state
from airflow_dagsched.provider.streaming.relocation.placing import (
    add_state,
    find_assignment,
    list_stateful,
    read_room,
)
from airflow_dagsched.provider.streaming.start_driver import locate_epoch, read_manifest
from airflow_dagsched.switch.places import INBOX_SERVICE, FlowPlaces
from airflow_dagsched.switch.signs import Seen
from airflow_dagsched.switch.story import Story

if TYPE_CHECKING:
    from airflow_dagsched.launch.planning.facts import Facts
    from airflow_dagsched.model.cluster import Cluster
    from airflow_dagsched.model.dataflow import Dataflow
    from airflow_dagsched.model.state import State
    from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Beside:
    """What runs of the flow, as a request finds it."""

    flow: FlowPlaces
    story: Story
    seen: Seen

    def find_owner(self) -> tuple[StreamManifest, Chosen] | None:
        """What the owner's application is, and where it was planned to be; None: it does not run, or is not known."""
        owner = self.story.owner
        if owner is None or owner not in self.seen.held:
            return None
        manifest, chosen = read_manifest(self.flow, self.story, owner), self._read_room(owner)
        return None if manifest is None or chosen is None else (manifest, chosen)

    def tell_state(self, dataflow: Dataflow, cluster: Cluster) -> State:
        """What of the state of ``dataflow`` is where on the cluster."""
        epochs = [each for each in (self.story.owner, self.story.successor) if each is not None]
        rooms = {each: self._read_room(each) for each in epochs}
        planned = {each: find_assignment(chosen) for each, chosen in rooms.items() if chosen is not None}
        return tell_state(self.story, self.seen, planned, list_stateful(dataflow), cluster.workers)

    def add_caught_up(self, facts: Facts) -> Facts:
        """The facts for a new graph: it keeps to where the owner's state is, and catches up wherever else it goes."""
        state, stateful = self.tell_state(facts.dataflow, facts.cluster), list_stateful(facts.dataflow)
        return add_state(facts, assume_caught_up(state, stateful, facts.cluster.workers)) if state.lags else facts

    def locate(self, epoch: int) -> Path:
        """The private folder of an epoch."""
        return self.flow.name_epoch(self.story.epochs[epoch].record.x_folder).private

    def _read_room(self, epoch: int) -> Chosen | None:
        try:
            return read_room(self.locate(epoch))
        except OSError:
            return None


@contextmanager
def open_room(
    beside: Beside,
    launch: LaunchSpec,
    hook: PlannerHook,
    rendered: Rendered,
    on_wait: Callable[[], None],
    *,
    moves: bool = False,
) -> Iterator[Allocation]:
    """Room for a new graph, reserved until it has started: the owner's, if its application takes the graph.

    With room for one graph only, the owner's executors count as free.

    :param on_wait: see ``allocate_room``, which says what is raised.
    :param moves: whether it is to leave the owner's application.
    """
    owner = beside.find_owner()
    if owner is not None and not moves and can_join(owner, hook, rendered):
        log.info("it fits into the application that runs, on the same executors")
        # They are there: nothing is reserved.
        yield Allocation(owner[1], Reservations(find_default_work_dir(), hook.master()))
        return
    hook.leaving = find_leaving(owner, rendered)
    named, steps = rendered.named, launch.group.steps
    known = beside.add_caught_up
    with allocate_room(launch, hook, LEVEL, steps, None, author=named, on_wait=on_wait, add_known=known) as room:
        yield room


@contextmanager
def open_inbox_room(
    flow: FlowPlaces, launch: LaunchSpec, hook: PlannerHook, rendered: Rendered, on_wait: Callable[[], None]
) -> Iterator[Allocation | None]:
    """Room for what fills the flow's inboxes, an application of its own; None: it runs, or nobody needs it.

    :param on_wait: see ``allocate_room``, which says what is raised.
    """
    stream = rendered.submit.flow.stream
    if stream is None or stream.settings.channel != "inbox" or has_inbox_service(flow):
        yield None
        return
    steps = [source.name for source in stream.sources]
    with allocate_room(launch, hook, LEVEL, steps, None, author=rendered.named, on_wait=on_wait) as room:
        yield room


def can_join(owner: tuple[StreamManifest, Chosen], hook: PlannerHook, rendered: Rendered) -> bool:
    """Whether the owner's application takes the graph, where it is, on executors of the same sizes."""
    manifest, chosen = owner
    with TemporaryDirectory() as folder:
        try:
            conf = size_application(rendered.named, hook, chosen, LEVEL, Path(folder)).conf
        except DagschedError:
            return False  # whatever is wrong with its settings is said where it is planned
    return not needs_application(manifest, make_manifest(rendered, chosen, "", settle_conf(rendered, conf)))


def find_leaving(owner: tuple[StreamManifest, Chosen] | None, rendered: Rendered) -> Executors | None:
    """Executors that are gone before those of the new graph come."""
    stream = rendered.submit.flow.stream
    if owner is None or stream is None:
        return None
    if stream.settings.overlap == "beside" and stream.settings.channel != "carry":
        return None
    manifest, chosen = owner
    return size_asked(manifest.application, LEVEL, chosen)


def drop_dead_pins(flow: FlowPlaces, story: Story, epoch: int, hook: PlannerHook) -> None:
    """Before an epoch, or what fills inboxes, is started again: its executors may be anywhere, if workers they were
    planned for are gone.

    Without it they would be waited for without end: tokens that those workers alone offer can be had nowhere else.
    """
    if epoch != INBOX_SERVICE and epoch not in story.epochs:
        return
    manifest = read_manifest(flow, story, epoch)
    private = locate_epoch(flow, story, epoch).private
    if manifest is None or not any(name.startswith(TOKENS) for name in read_settings(private)):
        return
    name = "what fills the inboxes" if epoch == INBOX_SERVICE else f"epoch {epoch}"
    try:
        gone = {*manifest.workers} - {worker.id for worker in hook.cluster().workers if worker.cores}
    except DagschedError as error:
        log.warning("whether the workers of %s are there is not known, so it stays with them: %s", name, error)
        return
    if gone:
        log.warning("workers of %s are gone, any will do: %s", name, ", ".join(sorted(gone)))
        drop_settings(private, TOKENS)
