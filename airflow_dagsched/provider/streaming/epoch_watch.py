"""The files of one stream, looked at again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from airflow_dagsched.provider.streaming.need_of_run import Look, Memory, Need, judge_look
from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import FlowPlaces, name_flow


class EpochWatch:
    """Whether a flow needs a run, from look to look. Not to be shared between threads that run at once."""

    def __init__(self, places: FlowPlaces, fingerprint: str, clock: Callable[[], float] = time.time) -> None:
        self._places = places
        self._fingerprint = fingerprint
        self._clock = clock
        self._log = FlowLog(places.log, clock)
        self._memory = Memory()

    def look(self, states: Mapping[str, str | None]) -> Need | None:
        """The need for which a run is to be made now. Raises as ``FlowLog.read``.

        :param states: run -> state of its launch task.
        """
        self._log.read()
        seen = look_at(self._places, self._log.story, self._clock())
        need, self._memory = judge_look(Look(self._log.story, seen, self._fingerprint, states), self._memory)
        return need


def watch_flow(work_dir: str, dag_id: str, flow: str, fingerprint: str) -> EpochWatch:
    """The watch of a flow of a DAG."""
    return EpochWatch(name_flow(Path(work_dir), dag_id, flow), fingerprint)
