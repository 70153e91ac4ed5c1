"""Whose lease is held, looked at in the files of the keeper that drivers really have."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from airflow_dagsched.process_names import name_process
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.outputs.commits import CommitLog
from airflow_dagsched.spark.outputs.leases import Keeper
from airflow_dagsched.switch.log.leases import LEASE_S, MARGIN_S, list_held
from airflow_dagsched.switch.places import FlowPlaces, name_flow, name_lease


def take(work_dir: Path, flow: FlowPlaces, epoch: int, process: str = "") -> Keeper:
    keeper = Keeper(CommitLog(LocalStore(), str(work_dir)), run_id="0a1b2c3d", lease_s=LEASE_S, process=process)
    keeper.acquire_lease(flow.lease_key, name_lease(epoch))
    return keeper


def test_a_lease_is_held_until_it_is_given_back_or_has_run_out(tmp_path: Path):
    """Also that of a flow whose name no folder can have."""
    flow = name_flow(tmp_path, "dag", "a/b")
    assert list_held(flow, (1, 2), time.time()) == frozenset()
    keeper = take(tmp_path, flow, 2)
    now = time.time()
    assert list_held(flow, (1, 2), now) == {2}
    assert list_held(flow, (1, 2), now + LEASE_S + MARGIN_S + 1) == frozenset()
    keeper.close()
    assert list_held(flow, (1, 2), time.time()) == frozenset()


def test_a_torn_lease_lasts_as_long_as_a_new_one(tmp_path: Path):
    flow = name_flow(tmp_path, "dag", "flow")
    folder = flow.name_leases(1)
    folder.mkdir(parents=True)
    (folder / "0000000007.json").write_text("{")
    now = (folder / "0000000007.json").stat().st_mtime
    assert list_held(flow, (1,), now + LEASE_S) == {1}
    assert list_held(flow, (1,), now + LEASE_S + MARGIN_S + 1) == frozenset()


def test_the_lease_of_a_process_that_was_killed_is_held_no_more(tmp_path: Path):
    """At once, where that can be seen; of another machine's nobody can tell."""
    flow = name_flow(tmp_path, "dag", "flow")
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as driver:
        mine = name_process(driver.pid)
        keepers = take(tmp_path, flow, 1, mine), take(tmp_path, flow, 2, f"another machine's/{mine}")
        assert list_held(flow, (1, 2), time.time()) == {1, 2}
        driver.kill()
    assert list_held(flow, (1, 2), time.time()) == {2}
    for each in keepers:
        each.close()
