"""A warm application on a real standalone cluster of two workers: between runs all of the cluster is free for others.

::

    warm      run, 4 executors │ waits, none                      │ run, 4 others
    other                      │      4 executors, all that fit   │
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.warm.terms import Terms
from demo.rest import until
from tests.cluster.submitting import result, start
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster
from tests.warm.kit import SETTINGS, Lab, Served, flow_of, open_lab, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.spark]

EXECUTORS = 4
SIZE = {"spark.executor.cores": "1", "spark.executor.memory": "512m"}
LIMITED = {"spark.cores.max": str(EXECUTORS)}
DYNAMIC = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": str(EXECUTORS)}


@pytest.fixture(scope="module")
def started() -> Iterator[StandaloneCluster]:
    with standalone_cluster(workers=2, cores=2, memory_mb=1024) as cluster:
        yield cluster


@pytest.fixture
def lab(started: StandaloneCluster, tmp_path: Path) -> Iterator[Lab]:
    settings = {**SETTINGS, **SIZE, "spark.driver.host": "127.0.0.1"}
    with open_lab(tmp_path, master=started.master, settings=settings, terms=Terms(300.0, 50)) as lab:
        lab.variables["SPARK_LOCAL_IP"] = "127.0.0.1"
        yield lab


def work(spark: Any) -> list[int]:
    """Rows that went through as many tasks at once as there may be, and the executors they were in."""
    import time

    def pass_on(rows: Any) -> Any:
        time.sleep(4.0)  # else an executor that is up first takes all of them
        yield sum(rows), str(Path.cwd())

    found = spark.sparkContext.range(100, numSlices=4).mapPartitions(pass_on).collect()
    return [sum(part for part, _ in found), len({folder for _, folder in found})]


def come_and_go(spark: Any) -> int:
    """It ends before executors are up."""
    return 1


def wait_until_free(started: StandaloneCluster, lab: Lab) -> None:
    """The application waits, and holds nothing of the cluster."""
    wait_until(lambda: (found := lab.find_status()) is not None and found.state == "idle", "it waits")
    until("no core in use", lambda: not list_used(started) or None, timeout_s=30.0)


def list_used(started: StandaloneCluster) -> dict[str, int]:
    return {host: page["coresused"] for host, page in started.workers().items() if page["coresused"]}


def count_executors(started: StandaloneCluster, ran: Served) -> int:
    """That its application has or had."""
    return sum(map(len, started.executors(str(ran.application)).values()))


@pytest.mark.parametrize("settings", [LIMITED, {}, DYNAMIC], ids=["limited", "all there are", "dynamic"])
def test_between_runs_others_have_all_of_the_cluster(
    settings: Mapping[str, str], started: StandaloneCluster, lab: Lab
) -> None:
    """And the next run has as many executors as the first one, which nobody has used before."""
    lab.settings.update(settings)
    first = lab.run(flow_of(work, dated=True))
    assert (first.code, first.values.get("work")) == (0, [4950, EXECUTORS]), first.output
    wait_until_free(started, lab)
    before = count_executors(started, first)
    other = result(start(started.master, {**SIZE, **LIMITED}, str(EXECUTORS)))
    assert other["executors"] == EXECUTORS
    second = lab.run(flow_of(work, dated=True))
    assert (second.code, second.number, second.values["work"]) == (0, 2, [4950, EXECUTORS]), second.output
    assert second.application == first.application
    assert count_executors(started, second) == before + EXECUTORS
    wait_until_free(started, lab)


def test_a_smaller_run_has_executors_as_many_as_it_asks_for(started: StandaloneCluster, lab: Lab) -> None:
    """It goes on in a larger application, and leaves the rest of the cluster to others."""
    lab.settings.update(LIMITED)
    first = lab.run(flow_of(work, dated=True))
    assert (first.code, first.values.get("work")) == (0, [4950, EXECUTORS]), first.output
    wait_until_free(started, lab)
    before = count_executors(started, first)
    lab.settings.update({"spark.cores.max": "2"})
    second = lab.run(flow_of(work, dated=True))
    assert (second.application, second.number) == (first.application, 2), second.output
    assert second.values["work"] == [4950, 2]
    assert count_executors(started, second) == before + 2
    lab.settings.update(LIMITED)
    third = lab.run(flow_of(work, dated=True))
    assert (third.application, third.values["work"]) == (first.application, [4950, EXECUTORS]), third.output
    wait_until_free(started, lab)


def test_executors_that_come_too_late_go_back(started: StandaloneCluster, lab: Lab) -> None:
    """They were granted to a run that has ended when they are up."""
    ran = lab.run(flow_of(come_and_go, dated=True))
    assert ran.code == 0, ran.output
    wait_until_free(started, lab)
    assert count_executors(started, ran) == EXECUTORS
