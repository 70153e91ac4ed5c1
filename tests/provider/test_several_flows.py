"""Several dataflows of one DAG: what is printed of them is what their launches do, beside each other and behind."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from airflow.sdk import DAG, task
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched import SparkDataflow, Table
from airflow_dagsched.launch.planning.submissions import add_settings
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import Measured, State
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.merge_dataflows import merge_dataflows
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.provider.commands.dag_plans import plan_flows
from airflow_dagsched.provider.commands.preview import find_interval
from airflow_dagsched.provider.spec.outlets import list_outlets
from airflow_dagsched.provider.spec.run_history import locate_history
from tests.plan.drawn import drawn
from tests.provider.drawn_dags import make_flow
from tests.provider.test_webhdfs import ROOT, on, page, said
from tests.testbed.answers import Said, answering
from tests.testbed.recorded import Submitted, record_launch

DATE = "2024-01-01T00:00:00+00:00"
ASKED = {"conn_id": None, "live": True, "date": DATE, "conf": None}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.check_java", lambda group: None)


def connect(monkeypatch: pytest.MonkeyPatch, *cores: int, **extra: Any) -> Cluster:
    """Workers of so many cores on a YARN that nobody can be asked of."""
    workers = tuple(Worker(id=f"w{at}", host=f"h{at}", cores=n, memory_mb=64_000) for at, n in enumerate(cores, 1))
    cluster = Cluster(manager="yarn", workers=workers)
    raw = {"conn_type": "spark", "host": "yarn", "extra": {"cluster": msgspec.to_builtins(cluster), **extra}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(raw))
    return cluster


def draw(name: str, parallelism: int) -> Dataflow:
    """One step of so many instances of a core, a minute each."""
    return replace(drawn("s", s={"parallelism": parallelism, "runtime_s": 60}), name=name)


def print_dag(flows: Sequence[SparkDataflow], **asked: Any) -> list[Plan]:
    """What ``airflow dagsched plan DAG --live --date D`` prints."""
    made = plan_flows(flows, Namespace(**{**ASKED, **asked}))
    for one in made:
        assert check(one.plan, one.dataflow, one.cluster, one.settings) == ()
    return list(map(add_settings, made))


def record(flow: SparkDataflow, folder: Path, **more: Any) -> Submitted:
    (launch,) = flow.launches()
    (found,) = record_launch(launch, folder, {}, find_interval(flow.dag, datetime.fromisoformat(DATE)), **more)
    return found


def open_dag(schedule: Any = None) -> DAG:
    name = "drawn" if schedule is None else "by_asset"
    return DAG(name, schedule=schedule, start_date=datetime(2024, 1, 1, tzinfo=UTC))


def compare(printed: Plan, submitted: Submitted) -> Group:
    """The group that is printed is the one that was submitted, with its settings."""
    (mine,), (launched,) = printed.groups, submitted.plan.groups
    assert launched == mine
    assert {name: submitted.conf[name] for name in mine.settings} == mine.settings
    return mine


def list_workers(group: Group) -> list[str]:
    return [box.worker for box in group.containers]


def list_cores(group: Group) -> list[int]:
    return [box.cores for box in group.containers]


def test_launches_at_one_moment_are_where_they_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    w1 4 cores, w2 4 cores
    first    4 instances      takes w1           second    launched while first starts: takes w2
    """
    connect(monkeypatch, 4, 4)
    with open_dag() as dag:
        flows = [make_flow(dag, draw(name, 4), work_dir=str(tmp_path)) for name in ("first", "second")]
    printed = print_dag(flows)
    assert [list_workers(made.groups[0]) for made in printed] == [["w1"], ["w2"]]
    assert [made.facts.beside for made in printed if made.facts] == [(), ("first",)]
    seconds: list[Submitted] = []
    first = record(flows[0], tmp_path, meanwhile=lambda: seconds.append(record(flows[1], tmp_path)))
    assert compare(printed[0], first).settings["spark.yarn.exclude.nodes"] == "h2"
    assert compare(printed[1], *seconds).settings["spark.yarn.exclude.nodes"] == "h1"


def test_one_behind_the_other_has_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, 4, 4)
    with open_dag() as dag:
        after, before = (make_flow(dag, draw(name, 8), work_dir=str(tmp_path)) for name in ("after", "before"))
        before >> after
    printed = print_dag([after, before])
    assert [list_workers(made.groups[0]) for made in printed] == [["w1", "w2"]] * 2
    assert [made.facts.beside for made in printed if made.facts] == [(), ()]
    for made, flow in zip(printed, [after, before], strict=True):
        compare(made, record(flow, tmp_path))


NARROW = st.lists(st.integers(1, 4), min_size=2, max_size=3)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NARROW, st.lists(st.integers(4, 8), min_size=3, max_size=4))
def test_they_share_as_files_that_are_planned_together(
    monkeypatch: pytest.MonkeyPatch, widths: list[int], cores: list[int]
) -> None:
    """Each on what the others leave, with as many cores as ``dagsched plan A.json B.json`` gives it, where none of them
    has to wait for another.
    """
    cluster = connect(monkeypatch, *cores)
    steps = [draw(f"f{at}", n) for at, n in enumerate(widths)]
    with open_dag() as dag:
        flows = [make_flow(dag, each) for each in steps]
    launches = [made.groups[0] for made in print_dag(flows)]
    policy = Policy("auto", PlacementSettings(), State())
    files = plan(merge_dataflows([flow.dataflow for flow in flows]), cluster, run=Run(policy=policy)).groups
    files = sorted(files, key=lambda group: group.steps)
    assert {group.start_s for group in files} == {0.0}
    assert list(map(list_cores, launches)) == list(map(list_cores, files))
    for groups in (launches, files):
        taken = Counter(box.worker for group in groups for box in group.containers for _ in range(box.cores))
        assert all(taken[worker.id] <= worker.cores for worker in cluster.workers)


def test_what_is_too_wide_takes_what_is_left_where_files_would_have_it_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    first    4 instances      takes w1
    second   8 instances      files: on both workers once first has ended; a launch: on w2 at once, in two waves
    """
    cluster = connect(monkeypatch, 4, 4)
    widths = {"first": 4, "second": 8}
    with open_dag() as dag:
        flows = [make_flow(dag, draw(name, n), work_dir=str(tmp_path)) for name, n in widths.items()]
    files = {
        group.steps[0]: group for group in plan(merge_dataflows([flow.dataflow for flow in flows]), cluster).groups
    }
    starts = sorted(files.values(), key=lambda group: group.start_s)
    assert starts[1].start_s == starts[0].end_s
    assert list_workers(files["second/s"]) == ["w1", "w2"]
    printed = print_dag(flows)
    assert [list_workers(made.groups[0]) for made in printed] == [["w1"], ["w2"]]
    seconds: list[Submitted] = []
    record(flows[0], tmp_path, meanwhile=lambda: seconds.append(record(flows[1], tmp_path)))
    compare(printed[1], *seconds)


SIZE = 2**30


def hold(path: str, *hosts: str) -> dict[str, Said]:
    """A folder with a file of 1 GiB on each host."""
    answers = {on("LISTSTATUS_BATCH", path): page(0, *((host, "FILE", SIZE) for host in hosts))}
    for host in hosts:
        blocks = [{"length": SIZE // 8, "hosts": [host]}] * 8
        answers[on("GETFILEBLOCKLOCATIONS", f"{path}/{host}")] = said({"BlockLocations": {"BlockLocation": blocks}})
    return answers


@pytest.mark.parametrize("by_asset", [False, True])
@pytest.mark.parametrize("before", [{}, hold("/points", "h1")], ids=["first run", "later run"])
def test_a_receptor_is_printed_and_launched_where_its_collector_ran(
    before: dict[str, Said], by_asset: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    collect    sink   reads /raw on h3, h4    writes /points
    receive    src    reads /points           printed on w3 and w4, before there are any; launched where HDFS says
    """
    answers = {ROOT: said({}), **hold("/raw", "h3", "h4"), **before}
    with answering(answers) as (url, _):
        connect(monkeypatch, 4, 4, 4, 4, webhdfs=url)
        raw, points = Table("hdfs://lake/raw"), Table("hdfs://lake/points")
        with open_dag() as dag, SparkDataflow("collect", work_dir=str(tmp_path)) as collect:
            task.spark_step(task_id="sink", reads=raw, writes=points, parallelism=8)(lambda spark: spark)()
        with (
            open_dag(schedule=list_outlets(collect.spec.steps.values())) if by_asset else dag,
            SparkDataflow("receive", work_dir=str(tmp_path)) as receive,
        ):
            task.spark_step(task_id="src", reads=points, parallelism=8)(lambda spark: spark)()
        if not by_asset:
            collect >> receive
        file = locate_history(collect.spec)
        file.parent.mkdir(parents=True)
        file.write_bytes(encode_value(State(measured={"sink": Measured(bytes=2 * SIZE)})))
        printed = print_dag([collect, receive])
        assert [list_workers(made.groups[0]) for made in printed] == [["w3", "w4"]] * 2
        assert printed[1].facts is not None
        assert (printed[1].facts.behind, printed[1].facts.beside) == (("collect",), ())
        record(collect, tmp_path)
        answers |= hold("/points", "h3", "h4")
        received = record(receive, tmp_path)
    assert received.conf["spark.yarn.exclude.nodes"] == "h1,h2"
    assert received.plan.groups[0].containers == printed[1].groups[0].containers
