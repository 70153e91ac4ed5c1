"""A stream on a real standalone cluster, of which a better worker becomes part: it moves there, warm-up first.

::

    small  127.0.0.2  2 cores   [epoch 1: ====================]
    large  127.0.0.3  4 cores          joins    [epoch 2: catches up =|= owner ======
                                                                    fence
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import TaskDeferred

from airflow_dagsched import Interval, SparkDataflow, Table
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.streaming import launch_stream
from airflow_dagsched.provider.streaming.epoch_watch import EpochWatch
from airflow_dagsched.provider.streaming.launch_stream import execute_stream
from airflow_dagsched.provider.streaming.launching import Launching
from airflow_dagsched.provider.streaming.relocation.move_watch import LOOK_S, MoveWatch
from airflow_dagsched.provider.wiring.stream_launch import StreamLaunchOperator
from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import read_sign
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.records import Batch, Current, Fence, Started, Stopped
from airflow_dagsched.switch.signs import Sign
from demo.rest import until
from tests.cluster.submitting import SMALL, SPARK_SUBMIT
from tests.streams import kit
from tests.streams.rows import DDL, NO_DIFFERENCE, Rows, compare, read_table, sum_windows
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]

LARGE = 4
ROWS = Rows()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandaloneCluster]:
    """The small worker; the large one joins later."""
    with standalone_cluster(workers=2, cores=(2, LARGE), memory_mb=3000, tokens=True, late=1) as cluster:
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", cluster.connection())
        monkeypatch.setenv("AIRFLOW__DAGSCHED__WORK_DIR", str(tmp_path / "reserved"))
        monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        monkeypatch.setenv("PATH", str(SPARK_SUBMIT.parent), prepend=":")
        yield cluster


@pytest.fixture
def flow(tmp_path: Path) -> Iterator[kit.Flow]:
    """A folder of rows, a table, a log; whatever driver still runs at the end is killed."""
    found = kit.Flow(tmp_path)
    try:
        yield found
    finally:
        for each in (each for each in found.read() if isinstance(each, Started)):
            with suppress(ProcessLookupError):
                os.killpg(os.getpgid(each.x_pid), signal.SIGKILL)


@pytest.fixture(autouse=True)
def _airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What launch tasks ask of Airflow; this very file is no DAG file."""

    def gather(spec: Any, context: dict[str, Any]) -> RunFacts:
        return RunFacts(
            dag_id=kit.DAG, run_id=context["ti"].run_id, try_id=TryId(try_number=1), began=0.0, conf={},
            interval=Interval("once"), context={}, states={}, skipped={}, feeds={},
        )  # fmt: skip

    monkeypatch.setattr(launch_stream, "gather_run_facts", gather)
    monkeypatch.setattr(launch_stream, "check_in_fresh_process", lambda flow, dag_file: None)
    monkeypatch.setattr(launch_stream, "ask_state", lambda dag_id, run_id, task_id: "deferred")


def declare(flow: kit.Flow) -> StreamLaunchOperator:
    with (
        DAG(kit.DAG, schedule=None),
        SparkDataflow(
            kit.FLOW, mode="streaming", window="10 seconds", lateness="5 seconds", trigger="1 second",
            work_dir=str(flow.work_dir), conn_id="cluster", driver_memory="700m",
            conf={name: value for name, value in SMALL.items() if name != "spark.driver.memory"},
        ) as made,
    ):  # fmt: skip

        @task.spark_stream_source(
            format="parquet", path=str(flow.source), schema=DDL, event_time="ts", options={"maxFilesPerTrigger": "1"}
        )
        def clicks(rows: Any) -> Any:
            return rows

        @task.spark_step(stateful=True, parallelism=2, memory=300)
        def by_user(clicks: Any) -> Any:
            return kit.sum_by_user(clicks)

        @task.spark_step(writes=Table(str(flow.table), mode="append"), memory=300)
        def out(by_user: Any) -> Any:
            return by_user

        out(by_user(clicks()))
    (launch,) = made.launches()
    assert isinstance(launch, StreamLaunchOperator)
    return launch


def run(launch: StreamLaunchOperator, run_id: str, events: dict[str, Any]) -> int:
    """A run's launch task, until it is deferred; the epoch that it follows."""
    ti = SimpleNamespace(
        dag_id=kit.DAG, run_id=run_id, task_id=launch.task_id, max_tries=0, xcom_push=lambda key, value: None
    )
    context: Any = {"ti": ti, "dag_run": SimpleNamespace(conf={}), "triggering_asset_events": events}
    with pytest.raises(TaskDeferred) as deferred:
        execute_stream(Launching.open(launch, context))
    epoch: int = deferred.value.trigger.epoch  # type: ignore[attr-defined]
    return epoch


def locate(flow: kit.Flow, epoch: int) -> EpochPlaces:
    log = FlowLog(flow.places.log)
    log.read()
    return flow.places.name_epoch(log.story.epochs[epoch].record.x_folder)


def read_hosts(flow: kit.Flow, epoch: int) -> tuple[str, ...] | None:
    """Of its executors, once its driver has told them."""
    sign: Sign | None = read_sign(locate(flow, epoch))
    return (sign.hosts or None) if sign is not None else None


def test_a_better_worker_joins_and_the_stream_moves_there_warm_up_first(started: StandaloneCluster, flow: kit.Flow):
    launch, feed = declare(flow), kit.Feed(flow, ROWS)
    stream = launch.spec.flow.stream
    assert stream is not None
    assert run(launch, "run 1", {}) == 1
    wait(flow, 1, feed.until(lambda: len(flow.list_batches(1)) >= 3))
    (small,) = until("its executors", lambda: read_hosts(flow, 1), timeout_s=60.0)

    looks = itertools.count(0.0, LOOK_S)
    watch = EpochWatch(flow.places, stream.fingerprint, moves=MoveWatch(lambda: next(looks)))
    states = {"run 1": "deferred"}
    assert [watch.look(states) for _ in range(3)] == [None] * 3, "there is one worker"
    large = started.join()
    assert [watch.look(states), watch.look(states)] == [None, "moved"]
    assert watch.move is not None
    assert (watch.move.source, watch.move.target) == ((small,), (large,))

    told = {"flow": kit.FLOW, "fingerprint": stream.fingerprint, "reason": "moved", "epoch": watch.move.epoch}
    assert run(launch, "run 2", {"clicks": [SimpleNamespace(extra={"payload": told})]}) == 2
    # The new graph begins behind all rows that there are: until one comes it has read nothing.
    feed.add()
    wait(flow, 2, feed.until(lambda: is_over(flow)))
    assert until("its executors", lambda: read_hosts(flow, 2), timeout_s=60.0) == (large,)
    check_order(flow)

    wait(flow, 2, lambda: not started.workers()[small]["coresused"])
    states = {"run 2": "deferred"}
    assert [watch.look(states) for _ in range(3)] == [None] * 3, "it stays there"
    expected = sum_windows(feed.given, ROWS.window_s, upto=flow.find_watermark(2))
    assert compare(expected, read_table(flow.table)) == NO_DIFFERENCE
    assert check_log(flow.places.log).violations == ()


def wait(flow: kit.Flow, epoch: int, is_so: Any) -> None:
    kit.wait_until(is_so, lambda: locate(flow, epoch).output.read_text(errors="replace")[-6000:])


def is_over(flow: kit.Flow) -> bool:
    """Whether the second graph is the owner, the first has ended, and windows came after that."""
    records = flow.read()
    stopped = [each.n for each in records if isinstance(each, Stopped) and each.epoch == 1]
    has_windows = any(isinstance(each, Batch) and each.epoch == 2 and each.kept for each in records)
    return bool(stopped) and has_windows and any(isinstance(each, Current) and each.epoch == 2 for each in records)


def check_order(flow: kit.Flow) -> None:
    """The new graph had batches of its own before the fence, and the old one went on until then."""
    records = flow.read()
    fence = next(each for each in records if isinstance(each, Fence))
    before = [each.epoch for each in records if isinstance(each, Batch) and each.n < fence.n]
    asked = next(each.n for each in records if isinstance(each, Started) and each.epoch == 2)
    assert 2 in before
    assert any(isinstance(each, Batch) and each.epoch == 1 and each.kept and each.n > asked for each in records)
