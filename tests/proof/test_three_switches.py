"""A bounded stream is changed three times while it runs, and its table is what a batch computation of its rows is.

::

    epoch 1   sums without "user 0"    2 partitions of state    worker 1
    epoch 2   the same                 3 partitions             worker 1
    epoch 3   sums of other values     3 partitions             worker 1    all users
    epoch 4   the same                 3 partitions             worker 2    an application of its own

With state that is carried on the sums are running totals of all windows until then.

Files come all the time, at the pace at which they are read. ``DAGSCHED_PROOF_ROWS`` says how many rows there are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_dagsched.cli import main
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.switch.log.inbox_log import InboxLog
from tests.proof.bulk import Bulk, count_stale, sum_files
from tests.proof.play import Play, Version
from tests.proof.totals import CARRIES, add_up, make_totals
from tests.proof.workers import make_conf
from tests.streams.kit import SOURCE, Flow, Graph
from tests.streams.rows import NO_DIFFERENCE, compare, read_table
from tests.streams.test_switch import sum_some, sum_threefold
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.proof]

BULK = Bulk(rows=int(os.environ.get("DAGSCHED_PROOF_ROWS", "5000000")))
BESIDE = StreamSettings(BULK.window_s, BULK.lateness_s, 0.5)
MODES = {
    "replay": BESIDE,
    "inbox": replace(BESIDE, channel="inbox"),
    "sequential": replace(BESIDE, overlap="sequential"),
    "carry": replace(BESIDE, channel="carry"),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    with standalone_cluster(workers=2, cores=4, memory_mb=4096, tokens=True) as found:
        yield found


def list_versions(settings: StreamSettings, cluster: StandaloneCluster) -> list[Version]:
    """What becomes of the stream."""
    here, there = (make_conf(cluster, host) for host in cluster.pages)
    sums, others, carries = sum_some, sum_threefold, ()
    if settings.channel == "carry":
        sums, others, carries = make_totals(without="user 0"), make_totals(factor=3), CARRIES
    first = Graph("first", sums, 2, files_per_batch=3, settings=settings, conf=here, carries=carries)
    wider = replace(first, code="wider", partitions=3)
    other = replace(wider, code="other", sums=others)
    moved = replace(other, code="moved", conf=there)
    return [
        Version(first, 0.0, without="user 0"),
        Version(wider, 0.15, without="user 0"),
        Version(other, 0.4, factor=3),
        Version(moved, 0.65, factor=3),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_the_table_is_the_batch_computation_of_the_same_rows(
    mode: str,
    cluster: StandaloneCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    flow, begun = Flow(tmp_path), time.monotonic()
    staged = list(BULK.stage(tmp_path / "staged"))
    with ExitStack() as undo:
        play = Play(flow, staged, list_versions(MODES[mode], cluster), undo)
        play.run()
    assert main(["stream", "check", str(flow.places.log)]) == 0
    sums = sum_files(play.supply.given, BULK.window_s, play.list_owned())
    expected = add_up(sums) if mode == "carry" else sums
    found = compare(expected, read_table(flow.table))
    with capsys.disabled():
        told = f"{len(expected)} sums: {len(found.lost)} lost, {len(found.twice)} twice, {len(found.wrong)} wrong"
        print(f"\n{mode}: {BULK.rows} rows, {play.tell()}, {told}, {time.monotonic() - begun:.0f} s")
    assert expected
    assert found == NO_DIFFERENCE
    check_workers(play, cluster)
    check_late_rows(play)


def check_workers(play: Play, cluster: StandaloneCluster) -> None:
    """The last graph alone was on other workers than those before it."""
    applications = play.list_applications()
    assert len(set(applications[:-1])) == 1
    hosts = [set(cluster.executors(each)) for each in (applications[0], applications[-1])]
    assert hosts == [{host} for host in cluster.pages]


def check_late_rows(play: Play) -> None:
    """Rows that came far too late are counted apart: by an inbox each of them, else each task's groups of them."""
    if play.settings.channel == "inbox":
        inbox = InboxLog(play.flow.places.name_inbox(SOURCE).log)
        inbox.read()
        assert inbox.story.dead == {"late": count_stale(play.supply.given)}
    else:
        assert all(count > 0 for count in play.count_late())
