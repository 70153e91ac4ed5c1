"""What is known of one run, and one try, when a launch begins; everything after that reads it here."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.interval import Interval


class RunFacts(Struct, frozen=True):
    """One run, one try."""

    dag_id: str
    run_id: str
    try_id: TryId
    began: float
    """When the try began: see ``Feed.began``."""
    conf: Mapping[str, Any]
    interval: Interval
    context: Mapping[str, Any]
    """JSON values a step may ask for; names the run has no value for are absent."""
    states: Mapping[str, str]
    """Airflow's state of ordinary tasks, mirrors and launch tasks; of each instance of a mapped task, as ``load_0``."""
    skipped: Mapping[str, str]
    """Mirror's task id -> the branch or short circuit that skipped it."""
    feeds: Mapping[str, Feed]
    """Feeds of the launch tasks of other groups."""
    backfill: bool = False
    """Whether the run is one of many, for as many intervals."""

    def find_states(self, task_id: str, others: Collection[str]) -> dict[str, str]:
        """How an ordinary task is, or each instance of a mapped one; empty where that is not known.

        :param others: tasks that may be there beside it: ``load_0`` may be one of its own.
        """
        if task_id in self.states:
            return {task_id: self.states[task_id]}
        mapped = re.compile(rf"{re.escape(task_id)}_\d+")
        return {name: state for name, state in self.states.items() if mapped.fullmatch(name) and name not in others}
