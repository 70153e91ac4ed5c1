"""A private PostgreSQL server: own folder, free port, gone with the block."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2

from demo import processes
from demo.rest import until
from demo.standalone import free_ports

LOGIN = "postgres"
"""Name of the database's user, and of the system's user that Debian's packages make."""


def server_programs() -> Path | None:
    """Folder of ``initdb`` and ``postgres``; None where no server is installed."""
    on_path = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return Path(on_path).parent if on_path else debian[-1].parent if debian else None


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server with an empty database; yields its SQLAlchemy URL.

    Raises ``RuntimeError`` where none is installed or it does not come up.
    """
    programs = server_programs()
    if programs is None:
        raise RuntimeError("no PostgreSQL server programs: install the system's package postgresql")
    with tempfile.TemporaryDirectory(prefix="dagsched-pg-") as scratch:
        data, (port,) = Path(scratch) / "data", free_ports(1)
        _own(Path(scratch))
        _initialize(programs, data)
        with _server([str(programs / "postgres"), "-D", str(data), "-p", str(port), "-k", scratch], Path(scratch)):
            dsn = f"postgresql://{LOGIN}@127.0.0.1:{port}/{LOGIN}"
            until("PostgreSQL", lambda: _answers(dsn), timeout_s=60.0, every_s=0.1)
            yield dsn.replace("postgresql://", "postgresql+psycopg2://")


@contextmanager
def _server(command: list[str], scratch: Path) -> Iterator[None]:
    fast = ["-c", "fsync=off", "-c", "max_connections=200", "-c", "listen_addresses=127.0.0.1"]
    server = processes.start([*_as_server_user(), *command, *fast], os.environ, scratch / "server.log", scratch)
    try:
        yield
    finally:
        processes.stop(server)


def _initialize(programs: Path, data: Path) -> None:
    command = [str(programs / "initdb"), "-D", str(data), "-U", LOGIN, "-A", "trust", "--no-sync", "-E", "UTF8"]
    done = subprocess.run([*_as_server_user(), *command], cwd=data.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stderr.strip()}")


def _as_server_user() -> list[str]:
    """The start of a command that leaves root behind: PostgreSQL refuses to run as root."""
    return ["setpriv", f"--reuid={LOGIN}", f"--regid={LOGIN}", "--clear-groups"] if os.geteuid() == 0 else []


def _own(folder: Path) -> None:
    if os.geteuid() == 0:
        user = pwd.getpwnam(LOGIN)
        os.chown(folder, user.pw_uid, user.pw_gid)


def _answers(dsn: str) -> bool | None:
    try:
        psycopg2.connect(dsn).close()
    except psycopg2.OperationalError:
        return None
    return True
