"""A private HDFS on loopback: one NameNode, a DataNode on each of some addresses, gone with the block.

The servers are Hadoop 2.7's, which run on Java 17 if they are let into its insides; ``make test-cluster`` fetches them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from demo import processes
from demo.rest import until
from demo.standalone import free_ports

CHECKOUT = Path(__file__).resolve().parents[2]
JARS = CHECKOUT / ".home" / "hdfs" / "jars"
SERVER = "org.apache.hadoop.hdfs.server"
INSIDES = (
    "lang", "lang.reflect", "util", "util.concurrent", "net", "nio", "text",
)  # fmt: skip
OPENED = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in INSIDES]
SMALL = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
JAVA = [*OPENED, "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", *SMALL]
SITE = {
    "dfs.replication": "1",
    "dfs.permissions.enabled": "false",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.namenode.fs-limits.min-block-size": "4096",
    "dfs.namenode.safemode.extension": "0",
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.heartbeat.recheck-interval": "500",
    "dfs.client.use.datanode.hostname": "true",
}
"""A DataNode that is silent for 11 s is dead: twice the recheck interval and ten heartbeats."""
SPARK = {"spark.hadoop.dfs.client.use.datanode.hostname": "true"}
"""What Spark's client must be told: else it asks every DataNode at the address that the NameNode sees, the same."""


@dataclass(frozen=True, slots=True)
class Hdfs:
    """Where it is: for Spark, and by HTTP."""

    url: str
    http: str
    data_nodes: Mapping[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def write(self, path: str, content: bytes) -> None:
        """Store a file; the NameNode sends us to the DataNode that is to take it."""
        asked = f"{self.http}/webhdfs/v1{path}?op=CREATE&overwrite=true&user.name={USER}"
        to = httpx.put(asked).headers["location"]
        httpx.put(to, content=content, timeout=60.0).raise_for_status()

    def write_on(self, host: str, path: str, content: bytes) -> None:
        """Store a file whose every block is on ``host``: HDFS chooses the DataNode, so until it has chosen that one."""
        for _ in range(PATIENCE):
            self.write(path, content)
            if self.hosts(path) == {host}:
                return
        raise AssertionError(f"{path}: {PATIENCE} times not on {host}")

    def hosts(self, path: str) -> set[str]:
        """Where the blocks of a file are."""
        asked = f"{self.http}/webhdfs/v1{path}?op=GET_BLOCK_LOCATIONS&user.name={USER}"
        blocks = httpx.get(asked).raise_for_status().json()["LocatedBlocks"]["locatedBlocks"]
        return {one["hostName"] for block in blocks for one in block["locations"]}

    def delete(self, path: str) -> None:
        """Remove a file."""
        httpx.delete(f"{self.http}/webhdfs/v1{path}?op=DELETE&user.name={USER}").raise_for_status()

    def kill(self, host: str) -> None:
        """End the DataNode there, as a machine ends that loses its power, and wait until the NameNode calls it dead."""
        processes.stop(self.data_nodes[host], grace_s=0.0)
        left = len(self.data_nodes) - 1
        until(f"DataNode {host} dead", lambda: self.live() == left or None, timeout_s=60.0)

    def live(self) -> int:
        """DataNodes that the NameNode hears of; -1: it does not answer yet, or takes no files yet."""
        try:
            state = _bean(self.http, "FSNamesystemState")
        except (httpx.HTTPError, LookupError, ValueError):
            return -1
        return int(state["NumLiveDataNodes"]) if state["FSState"] == "Operational" else -1


USER = "hdfs"
PATIENCE = 50
LOGGING = """
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c: %m%n
"""


@contextmanager
def hdfs(hosts: Sequence[str]) -> Iterator[Hdfs]:
    """Start a NameNode and a DataNode on each of ``hosts``; yields when all have registered.

    Raises ``RuntimeError`` where Hadoop's jars are missing.
    """
    if not JARS.is_dir():
        raise RuntimeError(f"no HDFS in {JARS}: make test-cluster fetches it (tools/hdfs.sh)")
    rpc, web, *ports = free_ports(2 + 3 * len(hosts))
    with tempfile.TemporaryDirectory(prefix="dagsched-hdfs-") as scratch, ExitStack() as running:
        java = _java(Path(scratch), {"fs.defaultFS": f"hdfs://127.0.0.1:{rpc}", **SITE})
        listens = {"namenode.name.dir": f"file://{scratch}/name", "namenode.http-address": f"127.0.0.1:{web}"}
        name_node = [f"{SERVER}.namenode.NameNode", *_settings(listens)]
        subprocess.run([*java, *name_node, "-format", "-force"], check=True, capture_output=True)

        def program(*command: str) -> subprocess.Popen[bytes]:
            started = processes.start([*java, *command], os.environ, Path(scratch) / "log", Path(scratch))
            running.callback(processes.stop, started)
            return started

        program(*name_node)
        nodes = {
            host: program(f"{SERVER}.datanode.DataNode", *_data_node(host, ports[3 * at : 3 * at + 3], scratch))
            for at, host in enumerate(hosts)
        }
        found = Hdfs(f"hdfs://127.0.0.1:{rpc}", f"http://127.0.0.1:{web}", nodes)
        try:
            until("HDFS", lambda: found.live() == len(hosts) or None, timeout_s=60.0)
        except TimeoutError as error:
            raise RuntimeError(f"{error}: {(Path(scratch) / 'log').read_text()[-4000:]}") from None
        yield found


def _data_node(host: str, ports: Sequence[int], scratch: str) -> list[str]:
    listens = dict(zip(("address", "http.address", "ipc.address"), (f"{host}:{port}" for port in ports), strict=True))
    own = {"data.dir": f"file://{scratch}/{host}", "hostname": host, **listens}
    return _settings({f"datanode.{name}": value for name, value in own.items()})


def _settings(values: Mapping[str, str]) -> list[str]:
    return [f"-Ddfs.{name}={value}" for name, value in values.items()]


def _java(scratch: Path, site: Mapping[str, str]) -> list[str]:
    """How a server is started: ``site`` in its configuration, and the folders in which it looks for its web pages."""
    for pages in ("hdfs", "datanode"):
        (scratch / "webapps" / pages).mkdir(parents=True)
    properties = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in site.items())
    (scratch / "log4j.properties").write_text(LOGGING)
    for name in ("core-site.xml", "hdfs-site.xml"):  # defaults of the second are read after the first
        (scratch / name).write_text(f"<configuration>{properties}</configuration>")
    return [f"{os.environ['JAVA_HOME']}/bin/java", *JAVA, "-cp", f"{scratch}:{JARS}/*"]


def _bean(http: str, name: str) -> dict[str, str]:
    answer = httpx.get(f"{http}/jmx?qry=Hadoop:service=NameNode,name={name}", timeout=5.0).raise_for_status()
    found: dict[str, str] = answer.json()["beans"][0]
    return found
