"""What a launch says of warm applications, and the command in spark-submit's place that comes of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from airflow_dagsched.class_archives.look import LOADS_DEFAULTS, read_site_settings
from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.launch.warm.about import FOLDER
from airflow_dagsched.launch.warm.identity import Start, describe_wanted
from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.process_names import name_process
from airflow_dagsched.provider.warm.request import Request
from airflow_dagsched.provider.warm.site_files import list_site_files
from airflow_dagsched.provider.warm.worker_process import find_owner

PACKAGE = Path(__file__).parents[2]
HOST = str(PACKAGE / "spark" / "warm_driver" / "main.py")
RELAY = str(PACKAGE / "provider" / "warm" / "relay.py")
FILES = ("spark.files", "spark.jars", "spark.archives", "spark.submit.pyFiles")
"""Settings whose files an application has loaded when it is started."""
LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages"})
RETAINED = {
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "5000",
    "spark.sql.ui.retainedExecutions": "20",
}
"""What Spark's pages remember of runs: of a warm application less, so that its memory does not grow with each run."""


class Offer(Struct, frozen=True):
    """A launch may go on in an application that is warm, and leave its own for others."""

    terms: Terms
    cache: Path
    """The user's private cache folder."""
    label: str
    """DAG and dataflow."""
    connection: str
    pool: str
    queue: str
    roots: tuple[Path, ...]
    """Folders of the author's modules."""


def build_request(
    offer: Offer, command: Sequence[str], manifest: str, settings: Mapping[str, str], environment: Mapping[str, str]
) -> Request:
    """What the relay is told.

    :param command: that starts a host; the properties file that it names is this submit's own.
    :param settings: with nothing that an archive of classes adds, which is there in the one run and not in the other.
    :param environment: as a driver program would have it; the same.
    """
    own = command.index("--properties-file") + 1
    start = Start(
        command=(*command[:own], *command[own + 1 :]),
        settings=settings,
        environment=environment,
        connection=offer.connection,
        pool=offer.pool,
        queue=offer.queue,
        folder=str(Path.cwd()),
        user=os.geteuid(),
        python=f"{sys.executable} {sys.version}",
    )
    submit = Path(shutil.which(command[0]) or command[0])
    site = read_site_settings(submit, environment) if LOADS_DEFAULTS in command else {}
    whole = {**site, **settings}
    of_site = look_at(list_site_files(submit, whole, environment))
    wanted = describe_wanted(start, [*list_code(offer.roots, whole), *list_installed(sys.path), *of_site])
    launcher, owner = name_process(os.getpid()), find_owner(os.getpid())
    return Request(
        command=tuple(command),
        manifest=manifest,
        folder=str(offer.cache / FOLDER),
        label=offer.label,
        connection=offer.connection,
        wanted=wanted,
        terms=offer.terms,
        launcher=launcher,
        owner=owner,
    )


def store_request(request: Request, folder: Path) -> list[str]:
    """Put the request into the submit's private ``folder``; the command that serves it."""
    path = folder / "request.json"
    write_file(path, request.to_json().encode(), 0o600)
    return [sys.executable, "-E", RELAY, str(path)]


def list_code(roots: Sequence[Path], settings: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
    """Name, bytes and time of the last change of each file whose change makes another application."""
    for root in dict.fromkeys((PACKAGE, *roots)):
        for folder, inside, names in os.walk(root):
            inside[:] = [name for name in inside if not name.startswith(".") and name not in LEFT_OUT]
            yield from look_at(Path(folder, name) for name in names if name.endswith(".py"))
    named = (path.strip() for name in FILES for path in settings.get(name, "").split(","))
    yield from look_at(Path(path.removeprefix("file://")) for path in named if path)


def list_installed(folders: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Name, bytes and time of the last change of the note that an installer has left of each package in ``folders``."""
    for folder in dict.fromkeys(folders):
        yield from look_at(Path(folder).glob("*.dist-info"))


def look_at(files: Iterable[Path]) -> Iterator[tuple[str, int, int]]:
    """Name, bytes and time of the last change of each that is there."""
    for file in files:
        try:
            found = file.stat()
        except OSError:  # on another file system, or gone just now
            continue
        yield str(file), found.st_size, found.st_mtime_ns
