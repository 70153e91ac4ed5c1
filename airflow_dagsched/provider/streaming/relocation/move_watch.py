"""The cluster of a stream, looked at again and again: whether the stream is to move."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.escalation.reservations import Reservation
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.clusters.reservations import Reservations
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir
from airflow_dagsched.provider.streaming.find_room import Beside
from airflow_dagsched.provider.streaming.relocation.judge_move import Move, Stay
from airflow_dagsched.provider.streaming.relocation.placing import Placing
from airflow_dagsched.provider.streaming.relocation.settle_move import Looks, add_look
from airflow_dagsched.provider.streaming.relocation.standing import Standing, find_standing

log = logging.getLogger(__name__)

LOOK_S = 30.0
"""Seconds between two looks: a manager is asked over the network, for weeks."""

Ask = Callable[[Placing], tuple[Cluster, list[Reservation]]]


def ask_cluster(placing: Placing) -> tuple[Cluster, list[Reservation]]:
    """The stream's cluster as it is now, and what launches are about to take of it. Raises :class:`DagschedError`."""
    hook = PlannerHook(placing.connection, None)
    reserved = Reservations(find_default_work_dir(), hook.master()).peek(time.time())
    return hook.find_cluster(placing.declared).cluster, reserved


class MoveWatch:
    """Of one flow. Remembers the last look."""

    def __init__(self, clock: Callable[[], float] = time.time, ask: Ask = ask_cluster) -> None:
        self._clock = clock
        self._ask = ask
        self._looks = Looks()
        self._due = 0.0
        self._said = ""

    def look(self, beside: Beside) -> Move | None:
        """The move that is to be made, as of the last looks; a new one is taken if it is time."""
        if self._clock() >= self._due:
            self._due = self._clock() + LOOK_S
            self._looks = add_look(self._look_now(beside), self._looks)
        return self._looks.settled

    def _look_now(self, beside: Beside) -> Move | Stay | None:
        try:
            standing = find_standing(beside)
            seen = self._look_at(standing) if standing is not None else None
            said = seen.reason if seen is not None else ""
        # A manager that is away says nothing of its workers; and a stream may be another user's.
        except (DagschedError, OSError) as error:
            seen, said = None, f"whether it is better off elsewhere is not known: {error}"
        if said and said != self._said:
            log.info("stream %s: %s", beside.flow.folder.name, said)
        self._said = said
        return seen

    def _look_at(self, standing: Standing) -> Move | Stay:
        if standing.pauses:
            return Stay("pauses")
        cluster, reserved = self._ask(standing.placing)
        return standing.look(cluster, reserved)
