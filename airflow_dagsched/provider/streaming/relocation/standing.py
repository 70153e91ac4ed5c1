"""A stream that runs alone, beside the cluster as it is: what a move of it is judged by, whoever looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.launch.escalation.reservations import Reservation, add_back
from airflow_dagsched.launch.managers.executors import Executors
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.state import State
from airflow_dagsched.provider.runtime.allocation import size_asked
from airflow_dagsched.provider.streaming.find_room import Beside
from airflow_dagsched.provider.streaming.prepare_epoch import LEVEL
from airflow_dagsched.provider.streaming.relocation.judge_move import Move, Placed, Stay, judge_move, read_placed
from airflow_dagsched.provider.streaming.relocation.lags import assume_caught_up, list_hosts
from airflow_dagsched.provider.streaming.relocation.placing import Placing, list_stateful, read_placing


@dataclass(frozen=True, slots=True)
class Standing:
    """The owner of a flow, which runs, and no other graph beside it."""

    beside: Beside
    epoch: int
    placing: Placing
    own: Executors
    """What it has of the cluster."""
    settings: StreamSettings

    @property
    def pauses(self) -> bool:
        """Whether its successor begins only when it has ended."""
        return self.settings.overlap == "sequential" or self.settings.channel == "carry"

    @property
    def has_executors(self) -> bool:
        """Whether it can go on: one that can't would never reach the end of the windows that are its own."""
        return bool(list_hosts(self.beside.seen, self.epoch))

    def look(self, cluster: Cluster, reservations: Sequence[Reservation] = ()) -> Move | Stay:
        """Whether it is to move, on the cluster as it is now. Raises as ``Placing.place``."""
        room = add_back(cluster, self.own) if self.pauses else cluster
        state = assume_caught_up(self._tell_state(cluster), list_stateful(self.placing.dataflow), cluster.workers)
        return self.judge(cluster, self.placing.place(room, state, reservations))

    def judge(self, cluster: Cluster, possible: Chosen | None) -> Move | Stay:
        """The same, where ``possible`` is what a second graph can have."""
        if not self.has_executors:
            return Stay("no executors")
        state = self._tell_state(cluster)
        wished = self.placing.place(add_back(cluster, self.own), state)
        return judge_move(
            self.epoch,
            state.previous.active if state.previous is not None else {},
            _read(wished),
            _read(possible),
            self.placing.list_steps(),
            cluster,
            self.placing.policy.settings,
        )

    def _tell_state(self, cluster: Cluster) -> State:
        return self.beside.tell_state(self.placing.dataflow, cluster)


def _read(chosen: Chosen | None) -> Placed | None:
    return read_placed(chosen) if chosen is not None and chosen.exact else None


def find_standing(beside: Beside) -> Standing | None:
    """None: no graph runs alone, or it was planned for one worker only. Raises ``OSError`` where its folder is closed
    to this process's user.
    """
    owner, story = beside.find_owner(), beside.story
    if owner is None or story.owner is None or story.successor is not None:
        return None
    placing = read_placing(beside.locate(story.owner))
    if placing is None:
        return None
    manifest, chosen = owner
    own = size_asked(manifest.application, LEVEL, chosen)
    return Standing(beside, story.owner, placing, own, manifest.settings)
