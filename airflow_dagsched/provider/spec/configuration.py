"""Airflow's section ``[dagsched]``: what is no such value is refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowConfigException

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.secrecy.cache_folder import choose_cache_folder
from airflow_dagsched.launch.warm.terms import read_duration

T = TypeVar("T")


def read_retention_days() -> float:
    """Days after which nobody reads any more what runs left."""
    return _read_option(
        "retention_days", lambda name: float(conf.getfloat("dagsched", name, fallback=30.0)), "a number of days"
    )


def is_planning() -> bool:
    """Whether steps run together at all."""
    return _read_option("enabled", lambda name: bool(conf.getboolean("dagsched", name, fallback=True)), "True or False")


def read_warm_s() -> float:
    """Seconds that applications stay when their groups have ended, where a dataflow says nothing of it; 0: none."""
    return _read_option("warm", lambda name: read_duration(conf.get("dagsched", name, fallback="")), "a time")


def read_warm_runs() -> int:
    """Runs that a warm application serves, at most."""
    return _read_option("warm_runs", lambda name: _read_count(conf.getint("dagsched", name, fallback=50)), "1 or more")


def _read_count(number: int) -> int:
    if number < 1:
        raise ValueError
    return number


def find_cache_folder() -> Path:
    """This user's private folder for what costs time to make again."""
    return choose_cache_folder(conf.get("dagsched", "cache_dir", fallback=""), os.environ, Path.home())


def _read_option(name: str, read: Callable[[str], T], kind: str) -> T:
    try:
        return read(name)
    except (AirflowConfigException, ValueError):
        value = conf.get("dagsched", name, fallback="")
        raise InvalidInput("Airflow's configuration", f"[dagsched] {name}", f"must be {kind}, not {value!r}") from None
