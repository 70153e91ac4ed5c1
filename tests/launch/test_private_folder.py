"""What a driver of an epoch is started from, again and again."""

from __future__ import annotations

import os
import pickle
import stat
from pathlib import Path

import pytest

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.streams.manifest import StreamManifest, read_stream_manifest
from airflow_dagsched.launch.streams.private_folder import (
    StartCommand,
    make_payload,
    read_private_payload,
    read_start_command,
    write_private_folder,
)
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.spark.steps.payload import read_payload

MANIFEST = StreamManifest(
    package_version="1",
    python="3.11",
    dag_id="dag",
    flow="flow",
    work_dir="/work",
    folder="a1b2c3d4",
    fingerprint="f",
    run_id="run",
    try_id=TryId(),
    steps=(),
    sources=(),
    queries=(),
    settings=StreamSettings(600, 300, 10),
)
COMMAND = StartCommand(("spark-submit", "main.py", "/work/epoch"), "/work", {"A": "ä"})


def test_what_is_written_is_read_and_stays_the_users_own(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        folder = tmp_path / "epoch" / "private"
        call = pickle.dumps(Call(None, sql="select 1"))
        write_private_folder(folder, make_payload(MANIFEST, {"step": call}, {"secret"}), "spark.a=b\n", COMMAND)
    finally:
        os.umask(before)
    text, secrets, payload = read_payload(read_private_payload(folder))
    assert read_stream_manifest(text, "1") == MANIFEST
    assert (secrets, payload.get_call("step").sql) == (["secret"], "select 1")
    assert read_start_command(folder) == COMMAND
    assert (folder / "spark.properties").read_text() == "spark.a=b\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}


def test_a_second_one_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    write_private_folder(folder, make_payload(MANIFEST, {}), "", COMMAND)
    with pytest.raises(OSError, match="private"):
        write_private_folder(folder, make_payload(MANIFEST, {}, {"other"}), "", COMMAND)
    assert read_payload(read_private_payload(folder))[1] == []
