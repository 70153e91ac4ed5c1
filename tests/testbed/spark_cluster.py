"""A private Spark standalone cluster on loopback: one Master, some Workers, gone with the block."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pyspark

from airflow_dagsched.cli import main
from demo import processes
from demo.rest import until
from demo.standalone import free_ports

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"
QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""Of Master and Workers, and so of executors, who have their environment: none lives long enough for more."""


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """Where the Master is, and each worker's page by its host."""

    master: str
    ui: str
    pages: Mapping[str, str] = field(default_factory=dict)
    programs: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    starts: Mapping[str, Callable[[], subprocess.Popen[bytes]]] = field(default_factory=dict)
    """Host -> what starts its worker."""
    late: list[str] = field(default_factory=list)
    """Hosts whose workers are to join later, or were killed."""

    def connection(self) -> str:
        """An Airflow connection to it, as JSON."""
        return json.dumps({"conn_type": "spark", "host": self.master, "extra": {"master_ui": self.ui}})

    def state(self) -> dict[str, Any]:
        """The Master's own account of itself."""
        return _json(f"{self.ui}/json/")

    def workers(self) -> dict[str, dict[str, Any]]:
        """Host -> what the live worker there says of itself."""
        return {host: _json(f"{page}/json/") for host, page in self.pages.items() if host in self._alive()}

    def executors(self, application: str) -> dict[str, list[dict[str, Any]]]:
        """Host -> executors that the application has or had there, as the live workers' own pages tell."""
        both = {host: [*page["executors"], *page["finishedexecutors"]] for host, page in self.workers().items()}
        found = {host: [one for one in all_ if one["appid"] == application] for host, all_ in both.items()}
        return {host: ours for host, ours in found.items() if ours}

    def kill(self, host: str) -> None:
        """End the worker there, as a machine ends that loses its power, and wait until the Master knows."""
        # Its executors, too, and nothing is asked before: that would give them a moment to say something.
        for process in processes.family(self.programs[host].pid):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        processes.stop(self.programs[host], grace_s=0.0)
        self.late.append(host)
        until(f"worker {host} gone", lambda: host not in self._alive() or None, timeout_s=60.0)

    def join(self) -> str:
        """Start the next worker that is to join later, or again, and wait until it has; its host."""
        host = self.late.pop(0)
        self.programs[host] = self.starts[host]()
        until(f"worker {host} there", lambda: host in self._alive() or None, timeout_s=120.0)
        return host

    def _alive(self) -> set[str]:
        return {worker["host"] for worker in self.state()["workers"] if worker["state"] == "ALIVE"}


@contextmanager
def standalone_cluster(
    workers: int,
    cores: int | Sequence[int],
    memory_mb: int,
    *,
    tokens: bool = False,
    late: int = 0,
    java: Mapping[str, str] = QUICK_JAVA,
) -> Iterator[StandaloneCluster]:
    """Start a Master and ``workers`` Workers on 127.0.0.2 and up; yields when all have registered.

    ``cores``: of each worker, or of one after another.
    ``tokens``: each worker takes a slot, and offers what applications choose workers by.
    ``late``: how many of them, the last ones, join when they are told to.
    ``java``: of their environment.
    """
    port, page, *pages = free_ports(2 + workers)
    hosts = {f"127.0.0.{2 + at}": f"http://127.0.0.{2 + at}:{own}" for at, own in enumerate(pages)}
    cluster = StandaloneCluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{page}", hosts, {})
    with tempfile.TemporaryDirectory(prefix="dagsched-spark-") as scratch, ExitStack() as running:
        here = Path(scratch)
        # As it is now: one that joins later is started as the others were.
        environment = {**os.environ, **java}

        def program(name: str, *arguments: object) -> subprocess.Popen[bytes]:
            command = [str(SPARK_CLASS), f"{DEPLOY}.{name}", *map(str, arguments)]
            started = processes.start(command, environment, here / "log", here)
            running.callback(processes.stop, started)
            return started

        program("master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", page)
        starts: dict[str, Callable[[], subprocess.Popen[bytes]]] = {}
        widths = [cores] * workers if isinstance(cores, int) else cores
        for slot, ((host, url), width) in enumerate(zip(hosts.items(), widths, strict=True), 1):
            folder = here / str(slot)
            where = ("--host", host, "--webui-port", url.rpartition(":")[2], "--work-dir", folder)
            offer = _offer(folder, slot) if tokens else ()
            size = ("--cores", width, "--memory", f"{memory_mb}m")
            starts[host] = partial(program, "worker.Worker", *where, *size, *offer, cluster.master)
        there = list(starts)[: workers - late]
        programs = {host: starts[host]() for host in there}
        until("Spark's workers", lambda: _registered(cluster, len(there)), timeout_s=120.0)
        yield replace(cluster, programs=programs, starts=starts, late=list(starts)[len(there) :])


def _offer(folder: Path, slot: int) -> tuple[str, ...]:
    """The worker's argument for what the command has written."""
    assert main(["worker-resources", str(folder), "--slot", str(slot), "--slots", "8"]) == 0
    return ("--properties-file", str(folder / "worker.conf"))


def _json(url: str) -> dict[str, Any]:
    with urlopen(url, timeout=5) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def _registered(cluster: StandaloneCluster, workers: int) -> bool | None:
    try:
        return cluster.state()["aliveworkers"] == workers or None
    except (URLError, OSError, ValueError):
        return None
