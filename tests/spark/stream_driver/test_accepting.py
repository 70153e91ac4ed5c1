"""What a driver of a stream believes, and what it refuses to run."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.streams.private_folder import StartCommand, make_payload, write_private_folder
from airflow_dagsched.spark.driver.launch_secrets import Refused
from airflow_dagsched.spark.stream_driver.choose_program import choose_program
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import accept_epoch, find_epoch
from airflow_dagsched.spark.stream_driver.program import run_program
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import read_ended
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.records import Epoch
from tests.streams.kit import Flow, Graph, make_manifest


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    """The program, called here, takes the signal."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def ask(tmp_path: Path) -> tuple[Flow, EpochPlaces, Epoch]:
    flow = Flow(tmp_path)
    places = flow.ask(Graph())
    log = FlowLog(flow.places.log)
    log.read()
    return flow, places, find_epoch(log.story, places.folder)


def test_what_the_log_names_is_run(tmp_path: Path):
    flow, places, record = ask(tmp_path)
    epoch = accept_epoch(flow.places, record, Masking())
    assert (epoch.number, epoch.manifest) == (1, make_manifest(flow, places, Graph()))


def open_to_others(flow: Flow, places: EpochPlaces) -> None:
    places.private.chmod(0o777)


def put_another(flow: Flow, places: EpochPlaces) -> None:
    """The folder of an epoch of the same user, in place of this one's."""
    other = flow.places.name_epoch("ffffffff")
    payload = make_payload(make_manifest(flow, other, Graph()), {})
    write_private_folder(other.private, payload, "", StartCommand((), ""))
    places.private.rename(places.folder / "before")
    other.private.rename(places.private)


def remove(flow: Flow, places: EpochPlaces) -> None:
    places.private.rename(places.folder / "before")


def put_of_another_python(flow: Flow, places: EpochPlaces) -> None:
    remove(flow, places)
    payload = make_payload(replace(make_manifest(flow, places, Graph()), python="3.1"), {})
    write_private_folder(places.private, payload, "", StartCommand((), ""))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (open_to_others, "others than this user may write"),
        (put_another, "of another epoch"),
        (remove, "No such file"),
        (put_of_another_python, "pickled by Python 3.1,"),
    ],
)
def test_what_may_be_anybodys_is_refused(tmp_path: Path, damage: Callable[[Flow, EpochPlaces], None], reason: str):
    flow, places, record = ask(tmp_path)
    damage(flow, places)
    with pytest.raises(Refused, match=reason):
        accept_epoch(flow.places, record, Masking())
    # The program says so, and starts no Spark.
    assert run_program(choose_program(places.folder)) == 2
    ended = read_ended(places)
    assert ended is not None
    assert (ended.code, ended.kind) == (2, "refused")
    assert reason.rstrip(",") in ended.message


def test_a_folder_that_nobody_asked_for_is_refused(tmp_path: Path):
    flow, _, _ = ask(tmp_path)
    stranger = flow.places.name_epoch("ffffffff")
    stranger.folder.mkdir()
    assert run_program(choose_program(stranger.folder)) == 2
    ended = read_ended(stranger)
    assert ended is not None
    assert "no epoch in the log has this folder" in ended.message


def test_what_the_program_logs_has_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    flow, _, _ = ask(tmp_path)
    # As the program finds the loggers of its own process.
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    run_program(choose_program(flow.places.name_epoch("password=guess-it").folder))
    address = "jdbc:x://h?password=guess-it"
    try:
        raise ValueError(address)
    except ValueError:
        logging.getLogger("py4j.clientserver").exception("There was an exception while executing the Python Proxy")
    printed = capsys.readouterr().err
    assert printed.count("password=***") == 2
    assert "Traceback" in printed
    assert "guess-it" not in printed
