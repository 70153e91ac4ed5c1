"""A standby as who follows a flow starts it: when, from which folder, and what is said where there is no room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.secrecy.properties import write_properties
from airflow_dagsched.launch.streams.private_folder import (
    StartCommand,
    read_private_payload,
    read_settings,
    read_start_command,
    write_private_folder,
)
from airflow_dagsched.provider.streaming.following import OWN_S, Followed, Look
from airflow_dagsched.provider.streaming.standbys.make_folder import FindRoom, find_any_room
from airflow_dagsched.provider.streaming.verdicts import Lost
from airflow_dagsched.switch.log.signs_files import place_order, write_sign
from airflow_dagsched.switch.log.standbys import find_standby
from airflow_dagsched.switch.log.status import read_status, tell_status
from airflow_dagsched.switch.places import STANDBY, EpochPlaces
from airflow_dagsched.switch.signs import HEAD_START_S, Sign
from tests.provider.streaming.flows import LEASE_S, Flow

TOKEN = "spark.executor.resource.not_{}.amount"
NAMED = "spark.kubernetes.executor.podTemplateFile"


def begin(tmp_path: Path, find_room: FindRoom = find_any_room) -> Flow:
    """A flow whose first epoch runs, and is the owner."""
    flow = Flow(tmp_path, standbys=1, find_room=find_room)
    flow.ask(1)
    places = flow.locate(1)
    (places.folder / "resources").mkdir(parents=True)
    (places.folder / "resources" / "pod.json").write_text("{}")
    command = StartCommand(("submit", "main.py", str(places.folder)), str(places.folder), {"A": "b"})
    settings = {TOKEN.format(2): "1", NAMED: f"{places.folder}/resources/pod.json"}
    write_private_folder(places.private, b"payload", write_properties(settings), command)
    flow.run_batch(1)
    assert flow.settle().owner == 1
    return flow


def get_standby(flow: Flow) -> EpochPlaces:
    found = find_standby(flow.places)
    assert found is not None
    return found


def refuse(epoch: EpochPlaces) -> None:
    raise LaunchRefused("a standby", "no room for its 2 executors", "add workers")


def test_a_standby_starts_from_a_folder_of_its_own(tmp_path: Path):
    flow = begin(tmp_path, lambda epoch: {TOKEN.format(1): "1"})
    standby = get_standby(flow)
    folder = str(standby.folder)
    assert read_start_command(standby.private) == StartCommand(("submit", "main.py", folder), folder, {"A": "b"})
    assert read_settings(standby.private) == {TOKEN.format(1): "1", NAMED: f"{folder}/resources/pod.json"}
    assert (standby.folder / "resources" / "pod.json").read_text() == "{}"
    assert read_private_payload(standby.private) == b"payload"
    assert flow.started == ["00000001", "00000001"]  # the epoch's folder, then the first standby's


def test_a_lost_standby_is_started_again_and_a_sent_one_stays_away(tmp_path: Path):
    flow = begin(tmp_path)
    flow.settle()
    assert len(flow.started) == 2
    flow.kill(STANDBY)
    flow.now += 5
    flow.set_lease(1, flow.now + LEASE_S)
    flow.settle()
    assert get_standby(flow).folder.name == flow.started[-1] == "00000002"
    assert place_order(flow.locate(1), "stop", "someone", flow.now, "enough")
    flow.kill(STANDBY)
    flow.settle()
    assert len(flow.started) == 3


def test_without_room_the_stream_runs_without_and_says_so(tmp_path: Path):
    flow = begin(tmp_path, refuse)
    assert len(flow.started) == 1
    told = tell_status(read_status(flow.places.folder, flow.now))
    assert "no standby is up\nthe last standby failed at" in told
    assert "no room for its 2 executors" in told
    flow.now += 400
    flow.set_lease(1, flow.now + LEASE_S)
    flow.find_room = find_any_room
    flow.join().step()
    assert get_standby(flow).folder.name == flow.started[-1] == "00000001", "its folder is the next one's"
    assert "no standby is up" not in tell_status(read_status(flow.places.folder, flow.now))


@pytest.mark.parametrize(("phase", "lost_after"), [("standby", HEAD_START_S), ("starting", 0.0)])
def test_who_follows_wakes_no_worker_while_a_standby_takes_over(tmp_path: Path, phase: str, lost_after: float):
    flow = begin(tmp_path)
    flow.now += 5
    sign = Sign(1, "app-1", flow.now, "running")
    write_sign(flow.locate(1), sign)
    write_sign(get_standby(flow), replace(sign, epoch=STANDBY, phase=phase))
    flow.kill(1)
    look = Look.open(Followed(str(flow.places.folder), 900, 1800, 21_600), flow.clock)
    found = {}
    for passed in (0.0, HEAD_START_S / 2, HEAD_START_S, HEAD_START_S + OWN_S):
        flow.now = sign.at + passed
        flow.set_lease(STANDBY, flow.now + LEASE_S)
        write_sign(get_standby(flow), replace(sign, epoch=STANDBY, phase=phase, at=flow.now))
        found[passed] = look.look((1,)).get(1)
    assert found == {passed: Lost(1) if passed >= lost_after + OWN_S else None for passed in found}
