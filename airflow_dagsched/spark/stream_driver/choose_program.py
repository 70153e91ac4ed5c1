"""Which program a folder is for."""

from __future__ import annotations

from pathlib import Path

from airflow_dagsched.spark.stream_driver.inbox.inbox_program import InboxProgram
from airflow_dagsched.spark.stream_driver.program import Program
from airflow_dagsched.spark.stream_driver.standby.standby_program import StandbyProgram
from airflow_dagsched.switch.places import FlowPlaces


def choose_program(folder: Path) -> Program:
    """That of an epoch, of the flow's inboxes, or of a standby."""
    if folder == FlowPlaces(folder.parent).inbox_service.folder:
        return InboxProgram(folder)
    is_standby = folder.parent == FlowPlaces(folder.parent.parent).standbys
    return StandbyProgram(folder) if is_standby else Program(folder)
