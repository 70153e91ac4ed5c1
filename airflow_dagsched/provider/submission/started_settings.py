"""The settings that a stream's driver is started with, each time: the epoch's, with archives of classes as they are by
now. A stream runs for weeks, and archives come and go.
"""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import replace
from pathlib import Path

from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.launch.secrecy.properties import write_properties
from airflow_dagsched.launch.streams.private_folder import PROPERTIES, StartCommand, read_settings
from airflow_dagsched.provider.submission.class_archive import ClassArchive

STARTED = "started.properties"
MASTER, DEFAULTS = "--master", "--load-spark-defaults"


def settle_command(private: Path, command: StartCommand) -> StartCommand:
    """The command to run, with the file of settings that it names beside the epoch's own, in ``private``."""
    argv, plain = command.argv, str(private / PROPERTIES)
    if MASTER not in argv or plain not in argv:
        return command
    submit, master = Path(shutil.which(argv[0]) or argv[0]), argv[argv.index(MASTER) + 1]
    environment, has_site = {**os.environ, **command.environment}, DEFAULTS in argv
    given = ClassArchive().give(submit, master, read_settings(private), environment, has_site=has_site)
    draft = private / f".{STARTED}-{uuid.uuid4().hex}"
    write_file(draft, write_properties(given.settings).encode(), 0o600)
    draft.replace(private / STARTED)
    started = tuple(str(private / STARTED) if each == plain else each for each in argv)
    return replace(command, argv=started, environment={**command.environment, **given.environment})
