"""The settings that a stream's driver is started with, each time: the epoch's, with archives of classes as they are by
now. A stream runs for weeks, and archives come and go.
"""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import replace
from pathlib import Path

from airflow_dagsched.class_archives.look import LOADS_DEFAULTS
from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.launch.secrecy.properties import write_properties
from airflow_dagsched.launch.streams.private_folder import (
    PROPERTIES,
    StartCommand,
    read_settings,
    read_start_command,
)
from airflow_dagsched.provider.submission.class_archive import ClassArchive, Given

STARTED = "started.properties"
MASTER = "--master"


def settle_command(private: Path, command: StartCommand, *, has_archives: bool = True) -> StartCommand:
    """The command to run, with the file of settings that it names beside the epoch's own, in ``private``.

    :param has_archives: whether it has any that are there.
    """
    if not has_archives:
        return command
    given = _give_archives(ClassArchive(), private, command)
    if given is None:
        return command
    draft = private / f".{STARTED}-{uuid.uuid4().hex}"
    write_file(draft, write_properties(given.settings).encode(), 0o600)
    draft.replace(private / STARTED)
    plain, started = str(private / PROPERTIES), str(private / STARTED)
    argv = tuple(started if each == plain else each for each in command.argv)
    return replace(command, argv=argv, environment={**command.environment, **given.environment})


def make_missing_archive(private: Path) -> None:
    """Have the archive made in the background that a driver would lack if it were started now.

    Raises ``FileNotFoundError`` where the folder is gone.
    """
    archive = ClassArchive()
    _give_archives(archive, private, read_start_command(private))
    archive.make_wanted()


def _give_archives(archive: ClassArchive, private: Path, command: StartCommand) -> Given | None:
    """What its driver is started with now; None: its settings are not where ours would be."""
    argv = command.argv
    if MASTER not in argv or str(private / PROPERTIES) not in argv:
        return None
    submit, master = Path(shutil.which(argv[0]) or argv[0]), argv[argv.index(MASTER) + 1]
    environment = {**os.environ, **command.environment}
    return archive.give(submit, master, read_settings(private), environment, has_site=LOADS_DEFAULTS in argv)
