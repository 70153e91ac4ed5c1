"""Where the executors of a standby go: on other workers than the owner's, if there is room."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.launch.escalation.reservations import FOR_START_S, reserve_executors, subtract_reservations
from airflow_dagsched.launch.managers.executors import Executors
from airflow_dagsched.launch.managers.local.live import is_local
from airflow_dagsched.launch.managers.standalone.submit import RESOURCE, TOKENS, list_offering
from airflow_dagsched.launch.streams.private_folder import ROOM
from airflow_dagsched.plan.passes.pin_hosts import choose_exclusion
from airflow_dagsched.provider.clusters.reservations import Reservations
from airflow_dagsched.provider.runtime.allocation import size_asked
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir
from airflow_dagsched.provider.streaming.prepare_epoch import LEVEL
from airflow_dagsched.provider.streaming.start_driver import read_private_manifest

if TYPE_CHECKING:
    from airflow_dagsched.launch.streams.manifest import StreamManifest
    from airflow_dagsched.model.cluster import Cluster, Worker
    from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
    from airflow_dagsched.switch.places import EpochPlaces

log = logging.getLogger(__name__)


def find_standby_room(hook: PlannerHook, epoch: EpochPlaces) -> Mapping[str, str] | None:
    """The tokens that keep the standby's executors where there is room now, which is reserved; None: its manager
    chooses.

    Raises :class:`LaunchRefused` where there is none, and what the hook raises.
    """
    master = hook.master()
    if is_local(master):
        return None
    manifest = read_private_manifest(epoch, epoch.folder.parents[4])
    chosen = _read_room(epoch)
    if hook.cluster().manager != "standalone" or chosen is None:
        log.info("where the standby's executors are is up to the cluster manager: it may be where the owner's are")
        return None
    reservations = Reservations(find_default_work_dir(), master)
    with reservations.hold_lock():
        now = time.time()
        cluster = subtract_reservations(hook.cluster(), reservations.list_valid(now))
        asked = choose_workers(cluster, manifest, size_asked(manifest.application, LEVEL, chosen))
        reservations.add(reserve_executors(f"standby.{uuid.uuid4().hex}", asked, now + FOR_START_S))
    shared = sorted({*asked.on} & {*manifest.workers})
    log.info("the standby is on %s%s", ", ".join(sorted(asked.on)), ", as is the owner" if shared else "")
    tokens = choose_exclusion(asked.on, cluster.workers).tokens
    return {f"{RESOURCE}{token}.amount": "1" for token in tokens}


def choose_workers(cluster: Cluster, manifest: StreamManifest, asked: Executors) -> Executors:
    """As many executors as the owner has, on other workers if they fit there. Raises :class:`LaunchRefused`."""
    wanted = {
        name: value
        for name, value in manifest.application.items()
        if name.startswith(RESOURCE) and not name.startswith(TOKENS)
    }
    offering = list(list_offering(wanted, cluster.workers))
    others = [worker for worker in offering if worker.id not in manifest.workers]
    found = next(filter(None, (deal_executors(asked, each) for each in (others, offering))), None)
    if found is None:
        need = f"{asked.count} executors of {asked.cores} cores and {asked.memory_mb} MiB"
        raise LaunchRefused(
            "a standby", f"no room for its {need}", "the stream runs without; add a worker", passing=True
        )
    return Executors(found, asked.cores, asked.memory_mb, asked.settings)


def deal_executors(asked: Executors, workers: Sequence[Worker]) -> dict[str, int] | None:
    """Worker -> executors, one to each in turn; None: they do not fit."""
    room = {
        worker.id: min(worker.free_cores // asked.cores, worker.free_memory_mb // asked.memory_mb) for worker in workers
    }
    if sum(room.values()) < asked.count:
        return None
    dealt: dict[str, int] = {}
    while sum(dealt.values()) < asked.count:
        for worker in [each for each, most in room.items() if dealt.get(each, 0) < most]:
            if sum(dealt.values()) < asked.count:
                dealt[worker] = dealt.get(worker, 0) + 1
    return dealt


def _read_room(epoch: EpochPlaces) -> Chosen | None:
    try:
        return msgspec.json.decode((epoch.private / ROOM).read_bytes(), type=Chosen)
    except (OSError, msgspec.MsgspecError):
        return None
