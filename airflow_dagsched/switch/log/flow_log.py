"""The log of a flow: its records are journal, fence and control channel of all that switches its graphs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from airflow_dagsched.switch.log.log_rules import FLOW_RULES
from airflow_dagsched.switch.log.numbered_log import NumberedLog
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.story import Story


class FlowLog(NumberedLog[Record, Story]):
    """One reader and writer of it. Not to be shared between threads: each has its own.

    What may not come next raises ``IllegalTransition``, where it is read as where it is to be added.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        super().__init__(folder, FLOW_RULES, clock)
