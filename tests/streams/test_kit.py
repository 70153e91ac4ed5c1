"""What the kit makes by hand is what a driver program reads, and a process that ends is noticed."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from airflow_dagsched.launch.streams.manifest import read_stream_manifest
from airflow_dagsched.launch.streams.private_folder import (
    StartCommand,
    make_payload,
    read_private_payload,
    write_private_folder,
)
from airflow_dagsched.spark.steps.payload import read_payload
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import EpochPlaces, name_flow
from airflow_dagsched.switch.records import Epoch
from airflow_dagsched.version import __version__
from tests.streams.kit import QUERY, SOURCE, STEP, Feed, Flow, Graph, make_manifest, write_sums
from tests.streams.rows import Rows
from tests.switch.drawn import FIRST, make_batch, make_stopped
from tests.switch.test_flow_log import add


def test_an_epoch_is_in_the_log_and_its_folder_has_what_it_runs(tmp_path: Path):
    flow = Flow(tmp_path)
    places = flow.ask(Graph())
    [record] = flow.read()
    assert isinstance(record, Epoch)
    assert (record.x_folder, record.fingerprint, record.x_queries) == (places.folder.name, "first", (QUERY,))
    text, _, payload = read_payload(read_private_payload(places.private))
    manifest = read_stream_manifest(text, __version__)
    assert manifest == make_manifest(flow, places, Graph())
    assert [each.id for each in manifest.steps] == [SOURCE, STEP, QUERY]
    function = payload.get_call(QUERY).function
    assert function is not None
    # By value: the driver has no tests.
    assert (function.__name__, function is write_sums) == ("write_sums", False)


def place(flow: Flow, code: str) -> EpochPlaces:
    """An epoch whose driver is a line of Python."""
    places = flow.places.name_epoch("00000001")
    payload = make_payload(make_manifest(flow, places, Graph()), {})
    command = StartCommand((sys.executable, "-c", code), str(flow.work_dir), {})
    write_private_folder(places.private, payload, "", command)
    return places


def test_a_driver_that_ends_is_noticed(tmp_path: Path):
    flow = Flow(tmp_path)
    places = place(flow, "print('so it was'); raise SystemExit(3)")
    with flow.run(places) as driver, pytest.raises(AssertionError, match=r"ended with 3:\nso it was"):
        driver.wait_for(lambda: False)


def test_a_driver_is_killed_or_stopped(tmp_path: Path):
    flow = Flow(tmp_path)
    told = tmp_path / "told"
    places = place(flow, f"import time; open({str(told)!r}, 'w').close(); time.sleep(1000)")
    with flow.run(places) as driver:
        driver.wait_for(told.exists)
        driver.kill()
        assert driver.code == -signal.SIGKILL
    with flow.run(places) as driver:
        assert driver.stop() == -signal.SIGTERM


def test_a_source_is_fed_when_all_that_run_have_read_what_it_has(tmp_path: Path):
    flow, log = Flow(tmp_path), FlowLog(name_flow(tmp_path / "work", "dag", "clicks").log)
    feed = Feed(flow, Rows(per_file=4))
    feed.go_on()
    feed.go_on()
    assert len(feed.given) == 4
    due = max(row.at for row in feed.given) / 1e6 - 5
    add(log, *FIRST)
    assert flow.list_running() == [1]
    feed.go_on()
    assert len(feed.given) == 4
    add(log, make_batch(1, 1, watermark=due))
    feed.go_on()
    feed.go_on()
    assert len(feed.given) == 8
    add(log, make_stopped(1))
    assert flow.list_running() == []
