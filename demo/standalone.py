"""A whole Airflow of its own: home folder, ports, login and database are nobody else's.

    with AirflowStandalone(home, dags) as airflow:
        run = airflow.client.trigger("flights", start, end)

    airflow standalone ── api-server · scheduler · dag-processor · triggerer     (separate processes)
                                           └─ LocalExecutor workers ── spark-submit ── driver

Leaving the block ends every process of the picture.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from demo import processes
from demo.rest import AirflowClient, until

USER = "admin"
OURS = "AIRFLOW__DAGSCHED__"
"""Settings that tie it to nothing."""


class AirflowStandalone:
    """Airflow's ``standalone``, from ``__enter__`` to ``__exit__``.

    ``database`` is a SQLAlchemy URL; without it the home folder holds an SQLite file. ``env`` goes to all
    of its processes. Raises ``RuntimeError`` with the end of the log if it does not come up.
    """

    def __init__(
        self,
        home: Path,
        dags: Path,
        *,
        database: str | None = None,
        master: str = "local[*]",
        env: Mapping[str, str] | None = None,
        ready_timeout_s: float = 240.0,
    ) -> None:
        self.home = home.resolve()
        self.log = self.home / "standalone.log"
        self._ready_timeout_s = ready_timeout_s
        self._ports = free_ports(3)
        own = settings(self.home, dags.resolve(), self._ports, database=database, master=master)
        self.env = {**clean(os.environ), **own, **(env or {})}
        self.url = f"http://127.0.0.1:{self._ports[0]}"
        self.user = USER

    def __enter__(self) -> Self:
        self.home.mkdir(parents=True, exist_ok=True)
        self.password = login(self.home)
        with ExitStack() as undo:
            command = [airflow_command(), "standalone"]
            self._program = processes.start(command, self.env, self.log, self.home)
            undo.callback(processes.stop, self._program)
            self.client = AirflowClient(self.url, self.user, self.password)
            undo.callback(self.client.close)
            self._wait_until_ready()
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    @property
    def pid(self) -> int:
        """Process id of the program at the top."""
        return self._program.pid

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``airflow ARGUMENTS`` against this Airflow; output and exit code are in the result."""
        command = [airflow_command(), *arguments]
        return subprocess.run(command, env=self.env, cwd=self.home, capture_output=True, text=True, check=False)

    def _wait_until_ready(self) -> None:
        def ready() -> bool | None:
            if self._program.poll() is not None:
                raise RuntimeError(f"airflow standalone ended with {self._program.returncode}:\n{self._log_end()}")
            return self.client.health() or None

        try:
            until("Airflow healthy", ready, self._ready_timeout_s)
        except TimeoutError as late:
            raise RuntimeError(f"{late}; the end of {self.log}:\n{self._log_end()}") from None

    def _log_end(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


def airflow_command() -> str:
    """The ``airflow`` that belongs to the running Python."""
    return str(Path(sys.executable).parent / "airflow")


def free_ports(count: int) -> list[int]:
    """Distinct ports of 127.0.0.1 that nobody listens on."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def login(home: Path) -> str:
    """The password of this home, made on first use and kept there where only its owner reads it."""
    kept = _passwords(home)
    if not kept.exists():
        kept.touch(mode=0o600)
        kept.write_text(json.dumps({USER: secrets.token_urlsafe(12)}))
    return str(json.loads(kept.read_text())[USER])


def _passwords(home: Path) -> Path:
    return home / "passwords.json"


def clean(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` without what would tie this Airflow to another one, or its Spark to another Spark."""
    foreign = ("AIRFLOW", "_AIRFLOW", "SPARK_", "PYSPARK_", "PYTHONPATH")
    kept = {name: value for name, value in env.items() if name.startswith(OURS) or not name.startswith(foreign)}
    own_bin = str(Path(sys.executable).parent)
    return {**kept, "PATH": os.pathsep.join([own_bin, env.get("PATH", os.defpath)])}


def settings(home: Path, dags: Path, ports: list[int], *, database: str | None, master: str) -> dict[str, str]:
    """Airflow's configuration as environment variables."""
    api, triggerer_logs, worker_logs = ports
    airflow = {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(api),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{api}",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{api}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "8",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_passwords(home)),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        # Beside the home, which the next demo empties.
        "AIRFLOW__DAGSCHED__CACHE_DIR": str(home.parent / "cache"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database or f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(triggerer_logs),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_logs),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        # All of it and Spark share a few cores: after the default, 5 s, tasks fail before they begin.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "30",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": master}),
        "AIRFLOW_HOME": str(home),
    }
    # A laptop's host name may lead nowhere.
    return {**airflow, "SPARK_LOCAL_IP": "127.0.0.1", "NO_COLOR": "1"}
