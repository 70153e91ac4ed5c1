"""The folder that a standby is started from: as the owner's, but for where its executors are."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.managers.standalone.submit import TOKENS
from airflow_dagsched.launch.secrecy.private_files import check_folder
from airflow_dagsched.launch.secrecy.properties import write_properties
from airflow_dagsched.launch.streams.private_folder import (
    StartCommand,
    read_private_payload,
    read_settings,
    read_start_command,
    write_private_folder,
)
from airflow_dagsched.switch.log.signs_files import write_ended
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.signs import Ended

FindRoom = Callable[[EpochPlaces], Mapping[str, str] | None]
"""Epoch -> the settings that keep the executors of its standby where there is room; None: those of the epoch.

Raises ``DagschedError`` where there is none.
"""
REFUSED = 2
"""The exit code of a program that is refused before it begins."""


def find_any_room(epoch: EpochPlaces) -> None:
    """Wherever the manager likes: nobody plans it."""


def make_standby_folder(epoch: EpochPlaces, standby: EpochPlaces, find_room: FindRoom, now: float) -> bool:
    """Make what the standby of the epoch is started from; False: there is no room for it, and its files say so.

    :param now: seconds since 1970.
    """
    try:
        check_folder(epoch.private, standby.folder.parents[4], epoch.folder.name)
        settings = find_room(epoch)
    except DagschedError as error:
        write_ended(standby, Ended(REFUSED, "refused", now, message=str(error)))
        return False
    kept = read_settings(epoch.private)
    if settings is not None:
        kept = {**{name: value for name, value in kept.items() if not name.startswith(TOKENS)}, **settings}
    _write(epoch, standby, kept)
    return True


def _write(epoch: EpochPlaces, standby: EpochPlaces, settings: Mapping[str, str]) -> None:
    """All that lies in the epoch's folder is the standby's own: that one may be gone before this."""
    resources = "resources"
    if (epoch.folder / resources).is_dir():
        shutil.copytree(epoch.folder / resources, standby.folder / resources, dirs_exist_ok=True)
    command = read_start_command(epoch.private)
    own = StartCommand(
        tuple(_move(each, epoch.folder, standby.folder) for each in command.argv),
        _move(command.cwd, epoch.folder, standby.folder),
        command.environment,
    )
    moved = {name: _move(value, epoch.folder, standby.folder) for name, value in settings.items()}
    write_private_folder(standby.private, read_private_payload(epoch.private), write_properties(moved), own)


def _move(text: str, old: Path, new: Path) -> str:
    return text.replace(str(old), str(new))
