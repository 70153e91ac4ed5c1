"""A private Spark standalone cluster on loopback: one Master, some Workers, gone with the block."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pyspark

from demo import processes
from demo.rest import until
from demo.standalone import free_ports

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """Where the Master is."""

    master: str
    ui: str

    def connection(self) -> str:
        """An Airflow connection to it, as JSON."""
        return json.dumps({"conn_type": "spark", "host": self.master, "extra": {"master_ui": self.ui}})

    def state(self) -> dict[str, Any]:
        """The Master's own account of itself."""
        with urlopen(f"{self.ui}/json/", timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def standalone_cluster(workers: int, cores: int, memory_mb: int) -> Iterator[StandaloneCluster]:
    """Start a Master and ``workers`` Workers on 127.0.0.2 and up; yields when all have registered."""
    port, page, *pages = free_ports(2 + workers)
    cluster = StandaloneCluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{page}")
    with tempfile.TemporaryDirectory(prefix="dagsched-spark-") as scratch, ExitStack() as running:
        here = Path(scratch)

        def program(name: str, *arguments: object) -> None:
            command = [str(SPARK_CLASS), f"{DEPLOY}.{name}", *map(str, arguments)]
            running.callback(processes.stop, processes.start(command, os.environ, here / "log", here))

        program("master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", page)
        for at, worker_page in enumerate(pages):
            host = ("--host", f"127.0.0.{2 + at}", "--webui-port", worker_page, "--work-dir", here / str(at))
            program("worker.Worker", *host, "--cores", cores, "--memory", f"{memory_mb}m", cluster.master)
        until("Spark's workers", lambda: _registered(cluster, workers), timeout_s=120.0)
        yield cluster


def _registered(cluster: StandaloneCluster, workers: int) -> bool | None:
    try:
        return cluster.state()["aliveworkers"] == workers or None
    except (URLError, OSError, ValueError):
        return None
