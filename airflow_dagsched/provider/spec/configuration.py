"""Airflow's section ``[dagsched]``: what is no such value is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowConfigException

from airflow_dagsched.errors import InvalidInput

T = TypeVar("T")


def read_retention_days() -> float:
    """Days after which nobody reads any more what runs left."""
    return _read_option(
        "retention_days", lambda name: float(conf.getfloat("dagsched", name, fallback=30.0)), "a number of days"
    )


def is_planning() -> bool:
    """Whether steps run together at all."""
    return _read_option("enabled", lambda name: bool(conf.getboolean("dagsched", name, fallback=True)), "True or False")


def _read_option(name: str, read: Callable[[str], T], kind: str) -> T:
    try:
        return read(name)
    except (AirflowConfigException, ValueError):
        value = conf.get("dagsched", name, fallback="")
        raise InvalidInput("Airflow's configuration", f"[dagsched] {name}", f"must be {kind}, not {value!r}") from None
