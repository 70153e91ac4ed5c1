"""The files of one stream, looked at again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from airflow_dagsched.provider.streaming.find_room import Beside
from airflow_dagsched.provider.streaming.need_of_run import Look, Memory, Need, find_meant, judge_look
from airflow_dagsched.provider.streaming.relocation.judge_move import Move
from airflow_dagsched.provider.streaming.relocation.move_watch import MoveWatch
from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import forget_refused, read_follower, read_refused
from airflow_dagsched.switch.places import FlowPlaces, name_flow


class EpochWatch:
    """Whether a flow needs a run, from look to look. Not to be shared between threads that run at once."""

    def __init__(
        self,
        places: FlowPlaces,
        fingerprint: str,
        clock: Callable[[], float] = time.time,
        moves: MoveWatch | None = None,
    ) -> None:
        self._places = places
        self._fingerprint = fingerprint
        self._clock = clock
        self._moves = moves or MoveWatch(clock)
        self.move: Move | None = None
        """That is to be made, as of the last look."""
        self._log = FlowLog(places.log, clock)
        self._memory = Memory()

    def look(self, states: Mapping[str, str | None]) -> Need | None:
        """The need for which a run is to be made now. Raises as ``FlowLog.read``.

        :param states: run -> state of its launch task.
        """
        self._log.read()
        seen = look_at(self._places, self._log.story, self._clock())
        refused = self._read_refused()
        self.move = self._moves.look(Beside(self._places, self._log.story, seen))
        moves = self.move.epoch if self.move is not None else 0
        look = Look(self._log.story, seen, self._fingerprint, states, refused, moves)
        need, self._memory = judge_look(look, self._memory)
        return need

    def _read_refused(self) -> str:
        """Fingerprint of the code that was refused; empty: none was. The file has other code by now where it is not
        this one: whoever brings the refused code back wants another look at it.
        """
        refused = read_refused(self._places)
        if refused is not None and refused.fingerprint != self._fingerprint:
            forget_refused(self._places, refused.fingerprint)
            return ""
        return refused.fingerprint if refused is not None else ""

    def find_follower(self) -> str:
        """The run whose task followed the epoch of this code last, as of the last look; empty: there is none."""
        meant = find_meant(self._log.story, self._fingerprint)
        follower = read_follower(self._places.name_epoch(meant.record.x_folder)) if meant else None
        return follower.run_id if follower else ""


def watch_flow(work_dir: str, dag_id: str, flow: str, fingerprint: str) -> EpochWatch:
    """The watch of a flow of a DAG."""
    return EpochWatch(name_flow(Path(work_dir), dag_id, flow), fingerprint)
