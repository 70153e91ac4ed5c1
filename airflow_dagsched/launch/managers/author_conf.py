"""Spark settings as an author may write them: one table of rules for a dataflow's ``conf`` and steps' ``application``.

Values may be secrets, so a refusal names the setting alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from airflow_dagsched.launch.secrecy.properties import is_kept

# spark-submit ignores a property of any other name, with no more than a warning.
_NAME = re.compile(r"spark\.[^\s=\x00-\x1f]+")
_TEMPLATE = re.compile(r"\{[{%]")
_SUBMIT = "spark.submit."
_SHIPS = "spark.submit.pyFiles"
"""The one of spark-submit's own settings that says nothing of where and how the driver program runs."""
_CONNECTION = "the connection says where applications run: its host is the master"
_REFUSED = {
    "spark.master": _CONNECTION,
    "spark.remote": _CONNECTION,
    "spark.api.mode": "steps run in a classic session, not over Spark Connect",
}


def find_settings_mistake(settings: Any, *, rendered: bool = False) -> str:
    """What is wrong with the first of ``settings`` that is wrong; empty if none is.

    :param rendered: whether templates in values have been rendered: until then their ends are not known.
    """
    if not isinstance(settings, Mapping):
        return f"must be a dict of Spark settings, not {type(settings).__name__}"
    for name, value in settings.items():
        mistake = _find_name_mistake(name) or _find_value_mistake(value, rendered)
        if mistake:
            return f"{name!r} {mistake}"
    return ""


def _find_name_mistake(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "is no Spark setting: its name must begin with 'spark.' (Hadoop's: 'spark.hadoop.') and have no blank"
    if name in _REFUSED:
        return f"is not the author's to give: {_REFUSED[name]}"
    if name.startswith(_SUBMIT) and name != _SHIPS:
        return "is not the author's to give: the driver program runs beside the Airflow worker (client mode)"
    return ""


def _find_value_mistake(value: Any, rendered: bool) -> str:
    if not isinstance(value, str | int | float):
        return f"must be a text or a number, not {type(value).__name__}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be a text or a finite number, not {value}"
    if isinstance(value, str) and (rendered or not _TEMPLATE.search(value)) and not is_kept(value):
        return "begins or ends with a blank, which Spark would take away: take it out"
    return ""


def read_count(conf: Mapping[str, Any], name: str) -> int | None:
    """The setting where it is a number above zero; None: not given, or a template."""
    text = str(conf.get(name, "")).strip()
    return int(text) if text.isdecimal() and int(text) else None
