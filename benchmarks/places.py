"""Where applications of a case run: in this machine's one Java, or on a cluster of two workers on loopback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.home import LIGHT, LIGHT_REMOTE, MASTER, changed_environment, make_executor_archive

Kind = Literal["local", "standalone"]
THEIRS = "AIRFLOW__DAGSCHED__EXECUTOR_CLASS_ARCHIVE"
ON_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
WORKERS, WORKER_CORES, WORKER_MB = 2, 1, 2048


@dataclass(frozen=True, slots=True)
class Place:
    """``conf``: what every application has there; ``light``: what a launch task chooses for Java there, besides."""

    name: str
    master: str
    light: Mapping[str, str]
    conf: Mapping[str, str] = field(default_factory=dict)


LOCAL = Place(MASTER, MASTER, LIGHT)


@contextmanager
def open_place(kind: Kind) -> Iterator[Place]:
    """What a case's applications run on is there inside the block, and Airflow's connection leads to it."""
    if kind == "local":
        yield LOCAL
        return
    with open_cluster() as master, changed_environment({THEIRS: make_executor_archive()}):
        yield Place(f"{WORKERS} workers, standalone", master, LIGHT_REMOTE, ON_LOOPBACK)


@contextmanager
def open_cluster() -> Iterator[str]:
    """A Master and Workers whose Java is as it comes; yields the Master's address."""
    from tests.testbed.spark_cluster import standalone_cluster

    with standalone_cluster(WORKERS, WORKER_CORES, WORKER_MB, java={}) as cluster:
        connection = {"AIRFLOW_CONN_SPARK_DEFAULT": cluster.connection(), "SPARK_LOCAL_IP": "127.0.0.1"}
        with changed_environment(connection):
            yield cluster.master
