"""What a launch hands to its relay: a file that only its user may read, gone with the submit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.launch.protocol.wire import decode_dataclass, encode_plain
from airflow_dagsched.launch.warm.identity import Wanted
from airflow_dagsched.launch.warm.terms import Terms


@dataclass(frozen=True, slots=True)
class Request:
    """One run, and how an application for it would be started."""

    command: tuple[str, ...]
    """spark-submit of a host; the host's folder comes last."""
    manifest: str
    folder: str
    """Of all warm applications of this user."""
    label: str
    connection: str
    wanted: Wanted
    terms: Terms
    launcher: str
    """Name of the process that runs the launch task."""
    owner: str
    """Name of the process whose end ends an application; empty: there is none."""

    def to_json(self) -> str:
        """As it is stored."""
        return json.dumps(encode_plain(self))


def read_request(path: Path) -> Request:
    """What ``to_json`` made."""
    return decode_dataclass(Request, json.loads(path.read_text("utf-8")))
