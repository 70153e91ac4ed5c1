"""What cluster managers answer, as clusters. The recordings have the fields that the real ones have."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.launch.managers.declared import merge_live_and_declared
from airflow_dagsched.launch.managers.kubernetes.live import read_kubernetes_cluster
from airflow_dagsched.launch.managers.kubernetes.objects import Taint, Toleration
from airflow_dagsched.launch.managers.kubernetes.quantity import parse_quantity
from airflow_dagsched.launch.managers.local.live import is_local, make_local_cluster
from airflow_dagsched.launch.managers.standalone.live import list_masters, read_standalone_cluster
from airflow_dagsched.launch.managers.yarn.live import Where, read_yarn_cluster
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.model.validate import validate_cluster

RECORDED = Path(__file__).parent / "recorded"
NODES, PODS = "kubernetes_nodes.json", "kubernetes_pods.json"


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def yarn(scheduler: str = "yarn_fifo.json", where: Where = Where()) -> Cluster:  # noqa: B008
    return read_yarn_cluster(recorded("yarn_nodes.json"), recorded(scheduler), "rm", where)


def free(cluster: Cluster) -> dict[str, tuple[int, int]]:
    return {worker.id: (worker.free_cores, worker.free_memory_mb) for worker in cluster.workers}


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[3]", 3), ("local[*]", 8), ("local[2, 4]", 2), ("local[*,4]", 8)]
)
def test_local_is_one_worker_with_the_threads_asked_for(master: str, cores: int) -> None:
    (worker,) = make_local_cluster(master, cores=8, memory_mb=1000).workers
    assert (worker.cores, worker.memory_mb) == (cores, 750)


def test_a_local_cluster_with_workers_is_not_local() -> None:
    assert not is_local("local-cluster[2,1,1024]")
    with pytest.raises(ValueError, match="is no local master"):
        make_local_cluster("spark://h:7077", 1, 1)


def test_standalone_workers_that_are_alive_called_after_their_hosts() -> None:
    """Dead, decommissioned and unknown ones are out; host 13 has a dead worker, and its successor."""
    cluster = read_standalone_cluster(recorded("master.json"), "m")
    assert [worker.id for worker in validate_cluster(cluster).workers] == ["10.0.0.11", "10.0.0.12", "10.0.0.13"]


def test_standalone_free_cores_memory_and_custom_resources() -> None:
    worker = read_standalone_cluster(recorded("master.json"), "m").workers[1]
    assert (worker.cores, worker.free_cores, worker.memory_mb, worker.free_memory_mb) == (4, 1, 8192, 6144)
    assert worker.resources["gpu"] == 2
    assert worker.free.resources is not None
    assert (worker.free.resources["gpu"], worker.free.resources["not_3"]) == (1, 3)
    assert worker.tokens == ("not_1", "not_3", "not_4", "not_5")


def test_workers_that_share_a_host_are_told_apart_by_port() -> None:
    state = json.loads(recorded("master.json"))
    state["workers"][1]["host"] = "10.0.0.12"
    cluster = read_standalone_cluster(json.dumps(state).encode(), "m")
    assert [worker.id for worker in cluster.workers] == ["10.0.0.12:35745", "10.0.0.12:41873", "10.0.0.13"]


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("spark://a:7077", ("a:7077",)),
        ("spark://a,b:7078", ("a:7077", "b:7078")),
        ("spark://10.0.0.1:1,10.0.0.2:2", ("10.0.0.1:1", "10.0.0.2:2")),
    ],
)
def test_several_masters(url: str, found: tuple[str, ...]) -> None:
    assert list_masters(url) == found


def test_yarn_nodes_that_run_without_a_label_less_room_for_the_application_master() -> None:
    """1 core and 1024 MiB of each."""
    assert free(yarn()) == {
        "node1.example.com": (5, 11264),
        "node2.example.com": (7, 15360),
        "node10.example.com": (7, 15360),
    }
    assert [worker.rack for worker in yarn().workers] == ["/r1", "/r1", "/r2"]


@pytest.mark.parametrize("nodes", [None, "", {}, {"node": None}])
def test_yarn_without_nodes_is_an_empty_cluster(nodes: object) -> None:
    content = json.dumps({"nodes": nodes}).encode()
    assert read_yarn_cluster(content, recorded("yarn_fifo.json"), "here").workers == ()


def test_yarn_queue_that_is_nearly_full() -> None:
    """Of 24 cores root leaves 30 %, data 10 %, nightly 40 %: 2 cores, one of them for the master."""
    assert free(yarn("yarn_capacity.json", Where("nightly"))) == {
        "node1.example.com": (0, 0),
        "node2.example.com": (1, 3891),
        "node10.example.com": (0, 0),
    }


def test_yarn_queue_of_the_fair_scheduler() -> None:
    """10 - 2 cores and 20480 - 4096 MiB are left, less the master: the roomiest nodes first."""
    assert free(yarn("yarn_fair.json")) == {
        "node1.example.com": (0, 0),
        "node2.example.com": (7, 15360),
        "node10.example.com": (0, 0),
    }


@pytest.mark.parametrize("queue", ["nightly", "data.nightly", "root.data.nightly"])
def test_yarn_label_and_the_queue_s_share_of_it(queue: str) -> None:
    """75 % of 32 cores, less the application master's."""
    (worker,) = yarn("yarn_capacity.json", Where(queue, "gpu")).workers
    assert (worker.id, worker.tags, worker.free_cores) == ("node5.example.com", {"label": "gpu"}, 23)


def test_yarn_queue_that_is_not_there() -> None:
    with pytest.raises(ClusterUnknown, match="there is no queue 'weekly'"):
        yarn("yarn_capacity.json", Where("weekly"))


def test_kubernetes_nodes_that_take_executors() -> None:
    """Not: tainted, cordoned, silent. A taint that only prefers others to come is none."""
    cluster = read_kubernetes_cluster(recorded(NODES), None, "api")
    assert [worker.id for worker in validate_cluster(cluster).workers] == ["worker2", "worker6", "worker10"]


def test_kubernetes_free_is_what_pods_do_not_request() -> None:
    """3920m - 1500m; 16393244Ki - 1536Mi. Pods that ended, or are nowhere yet, hold nothing."""
    cluster = read_kubernetes_cluster(recorded(NODES), recorded(PODS), "api")
    assert free(cluster)["worker10"] == (2, 16393244 // 1024 - 1536)


def test_kubernetes_init_containers_count_while_they_are_the_most() -> None:
    """2 cores before the start are more than 100m + 200m of the sidecar + 20m of overhead."""
    cluster = read_kubernetes_cluster(recorded(NODES), recorded(PODS), "api")
    assert free(cluster)["worker2"] == (1, 16393244 // 1024 - 1024)


@pytest.mark.parametrize(("places", "cores"), [("2", 2), ("1", 0)])
def test_kubernetes_node_whose_places_for_pods_are_taken_has_nothing_free(places: str, cores: int) -> None:
    """One pod holds a place on worker10; another has ended."""
    nodes = json.loads(recorded(NODES))
    for node in nodes["items"]:
        node["status"]["allocatable"]["pods"] = places
    cluster = read_kubernetes_cluster(json.dumps(nodes).encode(), recorded(PODS), "api")
    assert free(cluster)["worker10"] == (cores, (16393244 // 1024 - 1536) * (cores > 0))


def test_kubernetes_tolerated_taint_and_custom_resources() -> None:
    cluster = read_kubernetes_cluster(recorded(NODES), recorded(PODS), "api", [Toleration("team", "Equal", "spark")])
    worker = next(worker for worker in cluster.workers if worker.id == "worker3")
    assert (worker.resources, worker.free.resources) == ({"nvidia.com/gpu": 2}, {"nvidia.com/gpu": 1})


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        (Toleration("team", "Equal", "spark"), True),
        (Toleration("team", "Equal", "spark", "NoExecute"), False),
        (Toleration("team", "Equal", "web"), False),
        (Toleration("team", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Equal", "spark"), False),
    ],
)
def test_tolerations_as_kubernetes_has_them(toleration: Toleration, covered: bool) -> None:
    assert toleration.covers(Taint("team", "NoSchedule", "spark")) is covered


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", 0.5), ("4", 4), ("16Ki", 16384), ("2Gi", 2**31), ("1e3", 1000), ("1.5M", 1.5e6), ("100n", 1e-7)],
)
def test_quantities(text: str, value: float) -> None:
    assert float(parse_quantity(text)) == value


@given(st.text(max_size=8))
def test_a_quantity_is_a_number_or_refused(text: str) -> None:
    number: Decimal | None = None
    with suppress(ValueError):
        number = parse_quantity(text)
    assert number is None or number.is_finite()


READERS: dict[str, Callable[[bytes], Cluster]] = {
    "master.json": lambda content: read_standalone_cluster(content, "here"),
    "yarn_nodes.json": lambda content: read_yarn_cluster(content, recorded("yarn_fifo.json"), "here"),
    "yarn_capacity.json": lambda content: read_yarn_cluster(recorded("yarn_nodes.json"), content, "here"),
    NODES: lambda content: read_kubernetes_cluster(content, None, "here"),
    PODS: lambda content: read_kubernetes_cluster(recorded(NODES), content, "here"),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b"{}", b'{"status": 1}', b"[" * 100_000, b"\xff"])
def test_what_is_no_such_answer_is_a_clear_error(name: str, content: bytes) -> None:
    with pytest.raises(ClusterUnknown, match=r"^here gave no answer we can read: ."):
        READERS[name](content)


def test_a_master_that_does_not_lead() -> None:
    with pytest.raises(ClusterUnknown, match="this Master is STANDBY"):
        read_standalone_cluster(recorded("master_standby.json"), "here")


def test_an_error_names_the_field() -> None:
    with pytest.raises(ClusterUnknown, match=r"Expected `int`, got `str` - at `\$.workers\[0\].cores`"):
        read_standalone_cluster(recorded("master.json").replace(b'"cores": 4', b'"cores": "4"'), "here")


def test_the_declared_workers_that_are_alive() -> None:
    """
    live        h1, h2 free 4, h4                        declared   w1 on h1, w2 on h2 cost 3, w3 on h3
    together    w1 on h1, w2 on h2 free 4 cost 3, h4 without cores
    """
    live = Cluster(manager="yarn", workers=(_worker("h1"), _worker("h2", free=Free(cores=4)), _worker("h4")))
    declared = Cluster(
        manager="yarn",
        spill_mb_s=7.0,
        workers=(_worker("h1", id="w1"), _worker("h2", id="w2", cost=3.0, cores=6), _worker("h3", id="w3")),
    )
    found = merge_live_and_declared(live, declared)
    assert (found.spill_mb_s, [worker.id for worker in found.workers]) == (7.0, ["w1", "w2", "h4"])
    assert (found.workers[1].cost, found.workers[1].cores, found.workers[1].free_cores) == (3.0, 6, 4)
    assert (found.workers[2].cores, found.workers[2].memory_mb) == (0, 0)


def test_one_live_worker_is_not_two_declared_ones() -> None:
    live = Cluster(manager="yarn", workers=(_worker("h1"),))
    declared = Cluster(manager="yarn", workers=(_worker("h1", id="w1"), _worker("h1", id="w2")))
    assert [worker.id for worker in merge_live_and_declared(live, declared).workers] == ["w1"]


def test_a_declared_cluster_of_another_manager_says_nothing() -> None:
    live = Cluster(manager="yarn", workers=(_worker("h1"),))
    assert merge_live_and_declared(live, Cluster(manager="standalone")) == live


def _worker(host: str, **fields: object) -> Worker:
    return Worker(**{"id": host, "host": host, "cores": 8, "memory_mb": 8000, **fields})  # type: ignore[arg-type]
