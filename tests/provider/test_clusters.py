"""The planner hook reads the cluster of a connection; managers are played by a server that answers recordings."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.errors import DagschedError, InvalidInput, LaunchRefused
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from tests.testbed.answers import Said, answering

RECORDED = Path(__file__).parents[1] / "launch" / "recorded"
DECLARED = {"manager": "standalone", "workers": [{"id": "w1", "host": "10.0.0.11", "cores": 2, "memory_mb": 999}]}
NOWHERE = "http://127.0.0.1:9"


def recorded(name: str, **said: Any) -> Said:
    return Said((RECORDED / f"{name}.json").read_bytes(), **said)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``hook(host, extra..)``: of a connection that says so."""

    def made(host: str, *, password: str | None = None, **extra: Any) -> PlannerHook:
        raw = {"conn_type": "spark", "host": host, "password": password, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(raw))
        return PlannerHook("cluster")

    return made


def ids(cluster: Cluster) -> list[str]:
    return [worker.id for worker in cluster.workers]


def test_standalone(hook: Any) -> None:
    with answering({"/json/": recorded("master", kind="text/json;charset=utf-8")}) as (url, _):
        found = hook("spark://10.0.0.1:7077", master_ui=url)
        assert ids(found.cluster()) == ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
        assert found.test_connection() == (True, "standalone: 3 worker(s), 9 cores free")


def test_of_several_masters_the_one_that_leads(hook: Any) -> None:
    """a: STANDBY (passed over); nowhere: silent; b: ALIVE"""
    with (
        answering({"/json/": recorded("master_standby")}) as (a, _),
        answering({"/json/": recorded("master")}) as (b, _),
    ):
        assert len(ids(hook("spark://a,b:7077", master_ui=f"{a},{NOWHERE},{b}").cluster())) == 3
        with pytest.raises(LaunchRefused, match=r"this Master is STANDBY; http://127.0.0.1:9/json/ gave no answer"):
            hook("spark://a,b:7077", master_ui=[a, NOWHERE]).cluster()


def test_yarn(hook: Any) -> None:
    answers = {
        "/ws/v1/cluster/nodes": recorded("yarn_nodes"),
        "/ws/v1/cluster/scheduler": recorded("yarn_capacity"),
    }
    with answering(answers) as (url, _):
        address = url.removeprefix("http://")
        where = {"yarn_resourcemanager_webapp_address": address, "queue": "nightly", "node_label": "gpu"}
        assert ids(hook("yarn", **where).cluster()) == ["node5.example.com"]


def test_yarn_that_stands_by_sends_us_on(hook: Any) -> None:
    answers = {"/ws/v1/cluster/nodes": recorded("yarn_nodes"), "/ws/v1/cluster/scheduler": recorded("yarn_fifo")}
    with answering(answers) as (leader, _):
        on = {path: Said(status=307, headers={"Location": leader + path}) for path in answers}
        with answering(on) as (standby, _):
            assert len(ids(hook("yarn", yarn_resourcemanager_webapp_address=standby).cluster())) == 3


def test_kubernetes_with_a_token_and_tolerations(hook: Any) -> None:
    tolerations = json.dumps([{"key": "team", "operator": "Exists"}])
    answers = {"/api/v1/nodes": recorded("kubernetes_nodes"), "/api/v1/pods": recorded("kubernetes_pods")}
    with answering(answers) as (url, asked):
        cluster = hook(f"k8s://{url}", password="secret", tolerations=tolerations).cluster()
    assert ids(cluster) == ["worker2", "worker3", "worker6", "worker10"]
    assert {request.headers["Authorization"] for request in asked} == {"Bearer secret"}


def test_kubernetes_that_shows_no_pods(hook: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Nodes may be listed, pods of all namespaces not."""
    answers = {"/api/v1/nodes": recorded("kubernetes_nodes"), "/api/v1/pods": Said(b"{}", status=403)}
    with answering(answers) as (url, _), caplog.at_level(logging.WARNING):
        assert len(hook(f"k8s://{url}").cluster().workers) == 3
    assert "what is allocatable counts as free" in caplog.text


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Said(b"<html>", "text/html;charset=utf-8"), "it sent text/html;charset=utf-8, not JSON"),
        (Said(b"{}", status=500), "status 500"),
        (Said(b"{", "text/json"), "Input data was truncated"),
        (Said(after_s=1.0), "no whole answer came within 0.2 s"),
        (Said(b'"0123456789"', before_each_byte_s=0.1), "no whole answer came within 0.2 s"),
    ],
)
def test_what_is_no_answer(hook: Any, said: Said, reason: str) -> None:
    with answering({"/json/": said}) as (url, _), pytest.raises(LaunchRefused) as refused:
        hook("spark://a:7077", master_ui=url, answer_within_s=0.2).cluster()
    assert str(refused.value) == (
        f"cluster: {url}/json/ gave no answer we can read: {reason} "
        "(start the Master, or set the connection's extra 'master_ui' to its address)"
    )
    assert refused.value.passing


def test_a_manager_that_is_silent_is_replaced_only_if_the_connection_says_so(
    hook: Any, caplog: pytest.LogCaptureFixture
) -> None:
    silent = {"master_ui": NOWHERE, "cluster": DECLARED}
    with pytest.raises(LaunchRefused, match="gave no answer"):
        hook("spark://a:7077", **silent).cluster()
    with caplog.at_level(logging.WARNING):
        assert ids(hook("spark://a:7077", **silent, if_unreachable="declared").cluster()) == ["w1"]
    assert "planned for the declared cluster: http://127.0.0.1:9/json/ gave no answer" in caplog.text


@pytest.mark.parametrize("master", ["yarn", "mesos://m:5050"])
def test_a_manager_nobody_can_ask_is_what_is_declared(hook: Any, master: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({**DECLARED, "manager": "yarn"}))
    for declared in (str(file), file.read_text(), {**DECLARED, "manager": "yarn"}):
        assert ids(hook(master, cluster=declared).cluster()) == ["w1"]
    with pytest.raises(LaunchRefused, match="can't be asked for its workers"):
        hook(master).cluster()


def test_a_bad_declaration_names_the_field(hook: Any) -> None:
    with pytest.raises(InvalidInput, match=r"connection 'cluster', extra 'cluster': workers\[0\].cores"):
        hook("yarn", cluster={"manager": "yarn", "workers": [{"id": "a", "host": "b", "cores": "x"}]}).cluster()
    with pytest.raises(InvalidInput, match="tolerations"):
        hook("k8s://x", tolerations=[{"key": 7}]).tolerations()


def test_the_author_s_declaration_comes_first_and_only_the_living_count(hook: Any) -> None:
    author = Cluster(
        manager="standalone",
        workers=tuple(Worker(id=f"mine{at}", host=f"10.0.0.1{at}", cores=9, memory_mb=99_999) for at in (2, 4)),
    )
    with answering({"/json/": recorded("master")}) as (url, _):
        worker, *others = hook("spark://a:7077", master_ui=url, cluster=DECLARED).cluster(author).workers
    assert [other.cores for other in others] == [0, 0]
    assert (worker.id, worker.cores, worker.free_cores, worker.memory_mb) == ("mine2", 4, 1, 8192)


def test_a_cluster_without_a_living_worker_may_have_one_later(hook: Any) -> None:
    state = json.loads((RECORDED / "master.json").read_text())
    empty = json.dumps({**state, "workers": state["workers"][2:3]}).encode()
    with answering({"/json/": Said(empty)}) as (url, _), pytest.raises(LaunchRefused, match="no worker") as refused:
        hook("spark://a:7077", master_ui=url).cluster()
    assert refused.value.passing


def test_the_button_says_what_is_wrong(hook: Any) -> None:
    done, text = hook("spark://a:7077", master_ui=NOWHERE).test_connection()
    assert not done
    assert text.startswith("cluster: http://127.0.0.1:9/json/ gave no answer")


def test_no_secret_is_in_an_error(hook: Any) -> None:
    with pytest.raises(DagschedError) as refused:
        hook("k8s://http://127.0.0.1:9", password="hush").cluster()
    assert "hush" not in f"{refused.value} {refused.value!r}"
