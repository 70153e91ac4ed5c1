"""Starts the maker of an archive as a process that outlives this one, and holds nothing of it."""

from __future__ import annotations

import os
import sys

import msgspec

from airflow_dagsched.class_archives.make import PACKAGE, Request

MAKER = "airflow_dagsched.class_archives.make"


def start_making(request: Request) -> None:
    """Begin to make the archive; nothing is waited for. Raises ``OSError``."""
    argv = [sys.executable, "-m", MAKER, msgspec.json.encode(request).decode()]
    modules = os.pathsep.join((str(PACKAGE.parent), *filter(None, sys.path)))
    nothing = [
        (os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1, 2)
    ]  # a pipe of this process's would seem open to who reads it
    # A session of its own: what ends this process, and those of its group, leaves the maker alone. No Popen, which
    # warns of a child that is not waited for.
    os.posix_spawn(
        sys.executable, argv, {**request.environment, "PYTHONPATH": modules}, file_actions=nothing, setsid=True
    )
