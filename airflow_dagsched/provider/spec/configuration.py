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
from airflow_dagsched.launch.warm.terms import MOST_IDLE, read_duration

T = TypeVar("T")


def read_retention_days() -> float:
    """Days after which nobody reads any more what runs left."""
    return _read_option(
        "retention_days", lambda name: float(conf.getfloat("dagsched", name, fallback=30.0)), "a number of days"
    )


def is_planning() -> bool:
    """Whether steps run together at all."""
    return _read_option("enabled", lambda name: bool(conf.getboolean("dagsched", name, fallback=True)), "True or False")


def has_class_archives() -> bool:
    """Whether drivers get archives of classes, and these are made."""
    return _read_option("class_archive", _read_switch, "auto or off") == "auto"


def read_cache_dir() -> Path:
    """Where this host keeps what can be made again: ``[dagsched] cache_dir``, else a folder of the user's."""
    return _read_option("cache_dir", _read_folder, "an absolute path, or empty") or choose_cache_folder(os.environ)


def read_executor_archive() -> str:
    """Path of an archive of classes on the hosts of executors; empty: there is none."""
    found = _read_option("executor_class_archive", _read_folder, "an absolute path, or empty")
    return "" if found is None else str(found)


def _read_switch(name: str) -> str:
    found = str(conf.get("dagsched", name, fallback="auto")).strip()
    if found not in ("auto", "off"):
        raise ValueError(found)
    return found


def _read_folder(name: str) -> Path | None:
    found = str(conf.get("dagsched", name, fallback="")).strip()
    if found and not Path(found).is_absolute():
        raise ValueError(found)
    return Path(found) if found else None


def read_warm_s() -> float:
    """Seconds that applications stay when their groups have ended, where a dataflow says nothing of it; 0: none."""
    return _read_option("warm", lambda name: read_duration(conf.get("dagsched", name, fallback="")), "a time")


def read_warm_runs() -> int:
    """Runs that a warm application serves, at most."""
    return _read_count("warm_runs", 50)


def read_warm_idle() -> int:
    """Warm applications that may wait at once on a host, of one user."""
    return _read_count("warm_idle", MOST_IDLE)


def _read_count(name: str, fallback: int) -> int:
    return _read_option(name, lambda name: _check_count(conf.getint("dagsched", name, fallback=fallback)), "1 or more")


def _check_count(number: int) -> int:
    if number < 1:
        raise ValueError
    return number


def _read_option(name: str, read: Callable[[str], T], kind: str) -> T:
    try:
        return read(name)
    except (AirflowConfigException, ValueError):
        value = conf.get("dagsched", name, fallback="")
        raise InvalidInput("Airflow's configuration", f"[dagsched] {name}", f"must be {kind}, not {value!r}") from None
