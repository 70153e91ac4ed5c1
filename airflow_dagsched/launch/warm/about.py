"""The file that tells of a warm application, in its own folder; written by whoever starts it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass
from airflow_dagsched.launch.warm.identity import Wanted
from airflow_dagsched.launch.warm.terms import Terms

FOLDER = "warm"
"""Of all of them, in the cache folder."""
ABOUT, OUTPUT = "about.json", "output.log"
IDLE = "idle"
"""Who waits, while one does."""
ENDED = "ended.log"
"""Beside the folders: why applications ended."""


@dataclass(frozen=True, slots=True)
class About:
    """One warm application."""

    label: str
    """DAG and dataflow that it was started for."""
    connection: str
    began: float
    """Seconds since 1970."""
    wanted: Wanted
    terms: Terms
    starter: str
    """Name of the process that starts it."""
    owner: str
    """Name of the process whose end ends it: Airflow's worker; empty: of nobody."""

    def to_json(self) -> str:
        """As it is kept."""
        return json.dumps(encode_plain(self), sort_keys=True, indent=1)


def read_about(folder: Path) -> About | None:
    """None where the folder has none, or something else."""
    try:
        return parse_dataclass(About, (folder / ABOUT).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
