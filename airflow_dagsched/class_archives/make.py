"""Makes an archive of classes: ``python -m airflow_dagsched.class_archives.make REQUEST``, of lowest priority.

::

    a training application, whose Java writes the archive as it ends ──> proven by a Java that refuses all others
                                                                    ──> put in its place, in one step
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.class_archives.choose import see_from
from airflow_dagsched.class_archives.look import look_again, look_at_host, read_jar
from airflow_dagsched.class_archives.shelf import Shelf, open_draft
from airflow_dagsched.class_archives.unsigned import write_unsigned
from airflow_dagsched.launch.class_archive.bounds import MOST, Kept, has_no_room, select_removed
from airflow_dagsched.launch.class_archive.conf_folder import CONF_DIR
from airflow_dagsched.launch.class_archive.host import compute_key
from airflow_dagsched.launch.class_archive.recipe import (
    DRIVER_DEFAULT,
    join_options,
    list_making_options,
    list_proving_options,
)
from airflow_dagsched.launch.class_archive.verdict import Possible, Verdict, judge_host
from airflow_dagsched.launch.protocol.class_path import DRIVER_CLASS_PATH, join_class_paths
from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.launch.secrecy.properties import write_properties

PACKAGE = Path(__file__).parents[1]
TRAINING = PACKAGE / "spark" / "training" / "main.py"
WITHIN_S = 1800.0
"""Of a training: at lowest priority it may have to wait for a machine that is busy."""
SMALLEST_BYTES = 1 << 20
NEEDED_BYTES = 1 << 30
"""Free on the disk before it begins: an archive, and what Spark writes meanwhile."""
KEPT_VARIABLES = ("HOME", "JAVA_HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "SPARK_CONF_DIR", "SPARK_HOME",
                  "SPARK_LOCAL_IP", "TMPDIR", "TZ", "USER")  # fmt: skip
"""Of the environment of a training: no secret is in these, and nobody's Java options."""
LAST_WORDS = 400
FULL = (
    f"{MOST} others of this folder were used within a day, as many as it holds: `dagsched class-archive remove`, "
    "or one class path for more drivers"
)


class Request(Struct, frozen=True):
    """An archive that a driver has looked for."""

    cache_dir: str
    spark_submit: str
    master: str = "local"
    extra_class_path: str = ""
    environment: Mapping[str, str] = {}
    """Of the driver that there is none for, as far as it counts."""


class Failed(Exception):
    """No archive came of it; the text says why."""


def request_archive(
    cache_dir: Path, spark_submit: Path, master: str, settings: Mapping[str, str], environment: Mapping[str, str]
) -> Request:
    """An archive for drivers that ``spark_submit`` to ``master`` starts with ``settings`` in ``environment``."""
    kept = {name: environment[name] for name in KEPT_VARIABLES if name in environment}
    return Request(str(cache_dir), str(spark_submit), master, settings.get(DRIVER_CLASS_PATH, ""), kept)


def make_on_shelf(request: Request, *, at_once: bool = False) -> str:
    """Make the archive in the cache folder, unless it is there, somebody makes one, or it has just failed; why it is
    not there, empty where it is.

    :param at_once: whatever was in the way of the last one.
    """
    shelf = Shelf.of(Path(request.cache_dir))
    possible = find_possible(request, shelf)
    if isinstance(possible, Verdict):
        return str(possible)
    key = compute_key(possible.host)
    try:
        shelf.open()
        with shelf.hold_lock() as is_mine:
            return _make_alone(shelf, key, possible, request, at_once) if is_mine else "another process makes one"
    except OSError as error:
        return f"{error.filename or request.cache_dir}: {error.strerror}"


def make_file(request: Request, output: Path) -> str:
    """Make the archive as a file that everybody may read, wherever it is wanted; why there is none, or empty."""
    possible = find_possible(request)
    if isinstance(possible, Verdict):
        return str(possible)
    try:
        with open_draft(output.parent) as folder:
            archive = train(possible, request, folder)
            archive.chmod(0o444)
            archive.replace(output)
    except (Failed, OSError) as error:
        return str(error)
    return ""


def find_possible(request: Request, shelf: Shelf | None = None) -> Possible | Verdict:
    """What the request's driver finds here, if an archive is possible there.

    :param shelf: where it looks for it; None: it does not, so its class path stays as it comes.
    """
    settings = {DRIVER_CLASS_PATH: request.extra_class_path}
    found = look_at_host(Path(request.spark_submit), settings, request.environment)
    if isinstance(found, Verdict):
        return found
    return judge_host(found if shelf is None else see_from(shelf, found, request.master))


def _make_alone(shelf: Shelf, key: str, possible: Possible, request: Request, at_once: bool) -> str:
    shelf.sweep()
    note, failure = shelf.read_note(key), shelf.read_failure(key)
    if note is not None and shelf.is_as_noted(key, note):
        return ""
    if failure is not None and not at_once and not failure.is_over(time.time()):
        return failure.reason
    jar = shelf.locate_unsigned(key)
    try:
        if has_no_room(_list_kept(shelf), time.time()):
            raise Failed(FULL)
        unsigned = read_jar(jar) if write_unsigned(possible.host.jars, jar) else None
        path = join_class_paths(request.extra_class_path, "" if unsigned is None else unsigned.path)
        with shelf.open_draft() as folder:
            archive = train(possible, replace(request, extra_class_path=path), folder)
            shelf.keep(archive, key, possible.host, unsigned)
    except (Failed, OSError) as error:
        shelf.note_failure(key, str(error))
        shelf.remove_unsigned(key)
        return str(error)
    finally:
        prune(shelf, key)
    return ""


def prune(shelf: Shelf, wanted: str = "") -> tuple[str, ...]:
    """Remove what no driver looks for any more; the keys of it."""
    removed = select_removed(_list_kept(shelf), wanted)
    for key in removed:
        shelf.remove(key)
    return removed


def _list_kept(shelf: Shelf) -> list[Kept]:
    return [Kept(key, used_at, note.host == look_again(note.host)) for key, note, used_at in shelf.list_notes()]


def train(possible: Possible, request: Request, folder: Path) -> Path:
    """A proven archive in ``folder``. Raises :class:`Failed`, ``OSError``."""
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise Failed(f"{free >> 20} MB are free in {folder.parent}, {NEEDED_BYTES >> 20} are needed")
    archive, rows = folder / "archive", folder / "rows"
    rows.mkdir()
    making = list_making_options(possible.kind, str(archive))
    _submit(request, possible, folder, "train", making, [str(TRAINING), str(rows), str(os.getpid())])
    if not archive.exists() or archive.stat().st_size < SMALLEST_BYTES:
        raise Failed(f"Java wrote no archive: {_read_end(folder / 'train.log')}")
    proving = list_proving_options(possible.kind, str(archive))
    _submit(request, possible, folder, "prove", proving, ["--version"])
    return archive


def _submit(
    request: Request, possible: Possible, folder: Path, name: str, options: Sequence[str], program: Sequence[str]
) -> None:
    """A spark-submit to its end, within ``WITHIN_S``. Raises :class:`Failed` where it ends badly."""
    properties, log = folder / f"{name}.properties", folder / f"{name}.log"
    settings = {
        DRIVER_DEFAULT: join_options("", options),
        DRIVER_CLASS_PATH: request.extra_class_path,
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    write_file(properties, write_properties({name: value for name, value in settings.items() if value}).encode(), 0o600)
    argv = [request.spark_submit, "--master", "local[2]", "--properties-file", str(properties), *program]
    with log.open("wb") as output:
        child = subprocess.Popen(
            argv,
            cwd=folder,
            env={**make_environment(request.environment), CONF_DIR: possible.host.conf_folder},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        code = _wait(child)
    if code:
        raise Failed(f"{name}: {'it took too long' if code is None else f'exit code {code}'}: {_read_end(log)}")


def make_environment(kept: Mapping[str, str]) -> dict[str, str]:
    """Of a training application: this Python, this package."""
    modules = os.pathsep.join((str(PACKAGE.parent), *filter(None, sys.path)))
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return {**kept, "PYTHONPATH": modules, **python}


def _wait(child: subprocess.Popen[bytes]) -> int | None:
    """Its exit code; None where its time was over. Nothing of its session is left."""
    try:
        return child.wait(WITHIN_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _read_end(log: Path) -> str:
    """The end of what it printed, as one line."""
    return " ".join(log.read_text("utf-8", "replace").split())[-LAST_WORDS:]


def take_lowest_priority() -> None:
    """Let this process, and what it starts, run where nothing else wants to, and go first where memory runs out."""
    os.nice(19)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


if __name__ == "__main__":
    take_lowest_priority()
    make_on_shelf(msgspec.json.decode(sys.argv[1], type=Request))
