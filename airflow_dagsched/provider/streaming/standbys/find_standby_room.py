"""Where the executors of a standby go: on other workers than the owner's, if there is room."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.launch.escalation.reservations import FOR_START_S, reserve_executors, subtract_reservations
from airflow_dagsched.launch.managers.local.live import is_local
from airflow_dagsched.launch.managers.standalone.second_set import choose_workers, list_tokens
from airflow_dagsched.launch.streams.private_folder import ROOM
from airflow_dagsched.provider.clusters.reservations import Reservations
from airflow_dagsched.provider.runtime.allocation import size_asked
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir
from airflow_dagsched.provider.streaming.prepare_epoch import LEVEL
from airflow_dagsched.provider.streaming.start_driver import read_private_manifest

if TYPE_CHECKING:
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
    manifest, chosen = read_private_manifest(epoch, epoch.folder.parents[4]), _read_room(epoch)
    if chosen is None or chosen.planned.cluster.manager != "standalone":
        log.info("where the standby's executors are is up to the cluster manager: it may be where the owner's are")
        return None
    reservations = Reservations(find_default_work_dir(), master)
    with reservations.hold_lock():
        now = time.time()
        cluster = subtract_reservations(hook.cluster(), reservations.list_valid(now))
        first = size_asked(manifest.application, LEVEL, chosen)
        asked = choose_workers(cluster, first, manifest.workers, manifest.application)
        reservations.add(reserve_executors(f"standby.{uuid.uuid4().hex}", asked, now + FOR_START_S))
    is_shared = not {*asked.on}.isdisjoint(manifest.workers)
    log.info("the standby is on %s%s", ", ".join(sorted(asked.on)), ", beside the owner" * is_shared)
    return list_tokens(asked, cluster)


def _read_room(epoch: EpochPlaces) -> Chosen | None:
    try:
        return msgspec.json.decode((epoch.private / ROOM).read_bytes(), type=Chosen)
    except (OSError, msgspec.MsgspecError):
        return None
