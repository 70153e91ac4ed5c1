"""What is printed is what is launched: groups, order, containers, hosts, times, and spark-submit's settings."""

from __future__ import annotations

import json
import tempfile
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from airflow.sdk import DAG
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched import SparkDataflow
from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation.reservations import Reservation
from airflow_dagsched.launch.planning.submissions import add_settings
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import Measured, State
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.clusters.reservations import Reservations
from airflow_dagsched.provider.commands import actions
from airflow_dagsched.provider.commands.bag import find_flows
from airflow_dagsched.provider.commands.dag_plans import plan_flow
from airflow_dagsched.provider.commands.preview import find_interval
from airflow_dagsched.provider.commands.tuning import tune
from airflow_dagsched.provider.spec.run_history import locate_history
from tests.plan.drawn import clusters, dataflows, drawn
from tests.provider.drawn_dags import make_flow
from tests.testbed.recorded import Submitted, record_launch

DATE = "2024-01-01T00:00:00+00:00"
EXAMPLES = sorted(Path("dags").glob("*.py"))
HOSTS = {"yarn": "yarn", "standalone": "spark://127.0.0.1:9"}
POLICIES = ("auto", "cheapest", "round_robin", "first_fit", "data_locality")


@pytest.fixture(autouse=True)
def _java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_dagsched.provider.runtime.submitting.check_java", lambda group: None)


def connect(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
    """A cluster that nobody can be asked of, whatever its manager."""
    extra: dict[str, Any] = {"cluster": msgspec.to_builtins(cluster)}
    if cluster.manager == "standalone":
        extra |= {"if_unreachable": "declared", "master_ui": "http://127.0.0.1:9"}
    raw = {"conn_type": "spark", "host": HOSTS[cluster.manager], "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(raw))


def compare(flow: SparkDataflow, folder: Path, **conf: Any) -> int:
    """Print, then launch, launch after launch in the order of the plan; how many were compared.

    :param conf: the configuration of the run.
    """
    feeds: dict[str, Feed] = {}
    launches = {step: launch for launch in flow.launches() for step in launch.group.steps}
    interval = find_interval(flow.dag, datetime.fromisoformat(DATE))
    for launch in dict.fromkeys(launches[group.steps[0]] for group in print_plan(flow, **conf).groups):
        # Right before it: what launches before it have taught is a fact, too.
        printed = print_plan(flow, **conf)
        submitted = record_launch(launch, folder, feeds, interval, conf=conf)
        # Several, one after another, where it is too large; none, where all of it is left out.
        mine = [group for group in printed.groups if launches[group.steps[0]] is launch and group.containers]
        assert len(submitted) == len(mine)
        for planned, one in zip(mine, submitted, strict=True):
            compare_launched(planned, one)
    return len(flow.launches())


def print_plan(flow: SparkDataflow, **conf: Any) -> Plan:
    """What ``airflow dagsched plan DAG --date D --live --conf CONF`` prints."""
    return add_settings(plan_flow(flow, Namespace(conn_id=None, live=True, date=DATE, conf=json.dumps(conf))))


def compare_launched(printed: Group, submitted: Submitted) -> None:
    (launched,) = (group for group in submitted.plan.groups if group.id == printed.id)
    told = submitted.plan.facts
    alone = told is not None and told.groups == "run" and len(submitted.plan.groups) == 1
    assert launched == (_take_alone(printed) if alone else printed)
    assert set(submitted.manifest["targets"]) == set(printed.steps)
    assert (tuple(submitted.manifest["order"]), submitted.manifest["slots"]) == (printed.steps, printed.slots)
    for name, value in printed.settings.items():
        assert submitted.conf[name] == value, name


def _take_alone(group: Group) -> Group:
    """As planned by itself, since the run does not fit: it waits for nobody any more, and spills for no others."""
    time = replace(group.time, read=0.0, write=0.0)
    return replace(group, after=(), start_s=0.0, end_s=time.total_s, time=time)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    workers = (Worker(id=f"w{at}", host=f"h{at}", cores=at, memory_mb=8000) for at in (2, 3, 4))
    connect(monkeypatch, Cluster(manager="yarn", workers=tuple(workers)))
    for flow in find_flows(str(file)):
        assert compare(flow, tmp_path) == len(flow.grouping.groups)


DRAWN: dict[str, Any] = {
    "flow_drawn": dataflows(14).filter(lambda flow: bool(flow.steps) and not any(step.repeat for step in flow.steps)),
    "cluster": clusters(),
    "manager": st.sampled_from(sorted(HOSTS)),
    "disk_mb": st.sampled_from([None, None, 15, 30]),
    "policy": st.sampled_from(POLICIES),
    "told": st.booleans(),
    "tuned": st.booleans(),
    "seed": st.integers(0, 2**32),
}
SHARED = [HealthCheck.function_scoped_fixture]


@settings(max_examples=20, deadline=None, suppress_health_check=SHARED)
@given(**DRAWN)
def test_random_dags(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> None:
    """Policies, pins, late tasks, plan files, histories, groups that are too large."""
    compare_drawn(monkeypatch, **facts)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=SHARED)
@given(**DRAWN)
def test_many_random_dags(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> None:
    compare_drawn(monkeypatch, **facts)


def compare_drawn(
    monkeypatch: pytest.MonkeyPatch,
    *,
    flow_drawn: Dataflow,
    cluster: Cluster,
    manager: Any,
    disk_mb: int | None,
    policy: str,
    told: bool,
    tuned: bool,
    seed: int,
) -> None:
    workers = tuple(replace(worker, disk_mb=disk_mb) for worker in cluster.workers)
    connect(monkeypatch, replace(cluster, manager=manager, workers=workers))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", place)

        def parse() -> SparkDataflow:
            with DAG("drawn", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
                dag.fileloc = str(folder / "drawn.py")
                return make_flow(dag, flow_drawn, work_dir=place, placement=policy)

        flow = parse()
        if told:
            measure(flow, seed)
        try:
            if tuned:
                tune(flow, PlannerHook("spark_default")).write()
                flow = parse()
            PlannerHook("spark_default").plan(flow)
        except DoesNotFit:
            return  # a step is too large by itself
        compare(flow, folder)


def test_a_group_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    a ═1 MB═> b ═1 MB═> c ═10 GB═> d      any three fit by disk: two applications, that spill 1 MB
    e                                     placed beside them
    """
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    worker = Worker(id="w", host="h", cores=4, memory_mb=8000, disk_mb=9)
    connect(monkeypatch, Cluster(manager="yarn", workers=(worker,)))
    chain = drawn("a == b; b == c; c == d", e={"isolate": True}, **{name: {"disk_mb": 3} for name in "abcd"})
    with DAG("drawn", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        flow = make_flow(dag, chain, work_dir=str(tmp_path))
    remember(flow, {"a": Measured(bytes=10**6), "b": Measured(bytes=10**6), "c": Measured(bytes=10**10)})
    printed = print_plan(flow)
    assert [group.steps for group in printed.groups if group.steps != ("e",)] in CUTS
    assert [spill.bytes for spill in printed.spills] == [10**6]
    assert compare(flow, tmp_path) == 2


CUTS = [[("a",), ("b", "c", "d")], [("a", "b"), ("c", "d")]]


@pytest.mark.parametrize("manager", sorted(HOSTS))
def test_executors_of_the_author_s_size(manager: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight instances by executors of 2 cores: four of them are planned, and asked for."""
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    connect(monkeypatch, Cluster(manager=manager, workers=(Worker(id="w", host="h", cores=8, memory_mb=64_000),)))
    with DAG("drawn", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        wide = drawn("a", a={"parallelism": 8, "runtime_s": 60})
        flow = make_flow(dag, wide, work_dir=str(tmp_path), conf={"spark.executor.cores": "2"})
    assert [box.cores for box in print_plan(flow).groups[0].containers] == [2, 2, 2, 2]
    assert compare(flow, tmp_path) == 1


SAID: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"spark.executor.memory": "6g"}, {}),
    ({"spark.executor.memory": "6g", "spark.executor.memoryOverhead": "500m"}, {}),
    ({"spark.executor.instances": 3}, {}),
    ({"spark.executor.cores": "3", "spark.driver.memory": "2g"}, {}),
    ({"spark.cores.max": "6", "spark.executor.cores": "2"}, {}),
    ({"spark.executor.cores": "2"}, {"executor_cores": 4, "executor_memory": "5g"}),
    ({}, {"num_executors": 5, "total_executor_cores": 12, "driver_memory": "700m"}),
    ({"spark.scheduler.mode": "FIFO", "spark.executor.memory": "{{ ds[:1] }}g"}, {}),
]


@pytest.mark.parametrize("manager", sorted(HOSTS))
@pytest.mark.parametrize(("conf", "options"), SAID, ids=str)
def test_sizes_that_the_author_says(
    manager: Any, conf: Any, options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever says them, and how: what is printed is what is submitted, and no executor waits for cores for ever."""
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    workers = tuple(Worker(id=f"w{at}", host=f"h{at}", cores=8, memory_mb=16_000) for at in (1, 2))
    connect(monkeypatch, Cluster(manager=manager, workers=workers))
    with DAG("drawn", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        flow = make_flow(dag, drawn("a", a={"runtime_s": 60}), work_dir=str(tmp_path), conf=conf, **options)
    (group,) = print_plan(flow).groups
    (submitted,) = record_launch(flow.launches()[0], tmp_path, {}, find_interval(dag, datetime.fromisoformat(DATE)))
    assert {name: submitted.conf[name] for name in group.settings} == group.settings
    assert submitted.plan.groups == (group,)
    if not any("{{" in str(value) for value in conf.values()):  # what is rendered at launch no plan knows
        compare_sizes(group, submitted.conf, manager)
    if manager == "standalone":
        assert int(submitted.conf["spark.cores.max"]) >= int(submitted.conf["spark.executor.cores"])


def compare_sizes(group: Group, conf: dict[str, str], manager: str) -> None:
    """The planned containers are of the size that is submitted."""
    box, kib = group.containers[0], {"k": 1, "m": 1024, "g": 1024**2}

    def read_mb(name: str) -> int:
        return int(conf[name][:-1]) * kib[conf[name][-1]] // 1024

    assert box.cores == int(conf["spark.executor.cores"])
    beside = 0 if manager == "standalone" else read_mb("spark.executor.memoryOverhead")
    assert box.memory_mb == read_mb("spark.executor.memory") + beside


def test_a_run_of_one_submit_per_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its configuration says so, to the print as to the launch."""
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    connect(monkeypatch, Cluster(manager="yarn", workers=(Worker(id="w", host="h", cores=4, memory_mb=8000),)))
    with DAG("drawn", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        flow = make_flow(dag, drawn("a == b; b == c"), work_dir=str(tmp_path))
    asked = {"dagsched": {"run": "per_step"}}
    assert [group.steps for group in print_plan(flow, **asked).groups] == [("a",), ("b",), ("c",)]
    assert compare(flow, tmp_path, **asked) == 1


def test_pins_to_workers_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Printed where it is launched: anywhere."""
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    workers = tuple(Worker(id=f"w{at}", host=f"h{at}", cores=2, memory_mb=8000) for at in (1, 2))
    connect(monkeypatch, Cluster(manager="yarn", workers=workers))
    with DAG("drawn", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        flow = make_flow(dag, drawn("a == b", a={"pinned": ("w9",)}), work_dir=str(tmp_path))
    assert compare(flow, tmp_path) == len(flow.grouping.groups)


def measure(flow: SparkDataflow, seed: int) -> None:
    """Some of the steps ran before."""
    known = {
        name: Measured(runtime_s=float(seed % (7 + at)), bytes=seed % 10**9)
        for at, name in enumerate(flow.steps)
        if (seed >> at) % 2
    }
    remember(flow, known)


def remember(flow: SparkDataflow, known: dict[str, Measured]) -> None:
    """The history of the dataflow."""
    file = locate_history(flow.spec)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode_value(State(measured=known)))


def test_commands_print_facts_settings_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path))
    connect(monkeypatch, Cluster(manager="yarn", workers=(Worker(id="w1", host="h1", cores=4, memory_mb=8000),)))
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    told = Namespace(dag=str(file), conn_id=None, live=False, date="2024-01-05", conf=None, format="text")
    actions.plan(told)
    page = capsys.readouterr().out
    assert "planned for all there is of the declared cluster; the run of 2024-01-05" in page
    assert "groups of the DAG file" in page
    assert "spark.executor.cores=" in page
    assert "its author sets spark.hadoop.password" in page
    assert "hunter2" not in page
    actions.simulate(Namespace(**vars(told), runs=2, seed=0, noise=0.3, failures_per_hour=0.0))
    assert "plan" in capsys.readouterr().out
    assert not list(tmp_path.glob("reservations/**/*"))


SHOP = """
from datetime import datetime
from airflow.sdk import CronDataIntervalTimetable, dag, task
from airflow_dagsched import SparkDataflow


@dag(schedule=CronDataIntervalTimetable("@daily", timezone="UTC"), start_date=datetime(2024, 1, 1), catchup=False)
def shop():
    with SparkDataflow("sales", conf={"spark.hadoop.password": "hunter2"}):
        task.spark_step(task_id="orders")(lambda spark: spark.range(3))()


shop()
"""


def test_who_only_looks_writes_nothing(tmp_path: Path) -> None:
    """What has expired is not told, and stays for the next launch to remove."""
    held = Reservations(str(tmp_path), "yarn")
    with held.hold_lock():
        for name, expires in (("old", 1.0), ("new", 9.0)):
            held.add(Reservation(id=name, expires=expires, cores={}, memory_mb={}))
    files = sorted(tmp_path.rglob("*.json"))
    assert [one.id for one in held.peek(5.0)] == ["new"]
    assert sorted(tmp_path.rglob("*.json")) == files


@pytest.mark.parametrize(("date", "conf"), [("yesterday", None), ("2024-13-01", None), (None, "{"), (None, "[1]")])
def test_a_run_that_is_none(
    date: str | None, conf: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, Cluster(manager="yarn", workers=(Worker(id="w1", host="h1", cores=4, memory_mb=8000),)))
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    with pytest.raises(SystemExit, match="2"):
        actions.plan(Namespace(dag=str(file), conn_id=None, live=False, date=date, conf=conf, format="text"))
