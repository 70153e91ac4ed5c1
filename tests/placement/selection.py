"""The policy that Twister2's keys select: a mode by its name, or a class, which goes before the mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_dagsched.errors import InvalidInput

MODES: Mapping[str, str] = {
    "roundrobin": "round_robin",
    "firstfit": "first_fit",
    "datalocalityaware": "data_locality",
    "batchscheduler": "round_robin",
}
CLASSES: Mapping[str, str] = {
    "RoundRobinTaskScheduler": "round_robin",
    "RoundRobinBatchTaskScheduler": "round_robin",
    "BatchTaskScheduler": "round_robin",
    "FirstFitStreamingTaskScheduler": "first_fit",
    "DataLocalityStreamingTaskScheduler": "data_locality",
    "DataLocalityBatchTaskScheduler": "data_locality",
}
UPSTREAM = "edu.iu.dsc.tws.tsched."
MANY_GRAPHS = "BatchTaskScheduler"
DEFAULT = "round_robin"


def select_policy(config: Mapping[str, Any], mode: str, *, graphs: int = 1, compatible: bool = False) -> str:
    """Name or dotted path of a policy for ``mode``, streaming or batch. Raises ``InvalidInput``.

    ``compatible``: the mode's name is ignored, and only one class takes several graphs, as there.
    """
    named = _find_value(config, f"{mode}.class")
    if compatible and graphs > 1 and not str(named).endswith(f".{MANY_GRAPHS}"):
        raise InvalidInput("settings", f"twister2.taskscheduler.{mode}.class", f"only {MANY_GRAPHS} takes many graphs")
    if named is not None:
        return _resolve_class(str(named))
    name = None if compatible else _find_value(config, mode)
    if name is None:
        return DEFAULT
    if name not in MODES:
        raise InvalidInput("settings", f"twister2.taskscheduler.{mode}", f"no mode is called {name!r}")
    return MODES[name]


def _resolve_class(path: str) -> str:
    """A class of Twister2's own stands for a policy, any other for itself."""
    if path.startswith(UPSTREAM):
        name = path.rpartition(".")[2]
        if name in CLASSES:
            return CLASSES[name]
        raise InvalidInput("settings", path, f"no scheduler is called {name!r}")
    return path


def _find_value(config: Mapping[str, Any], key: str) -> Any:
    for prefix in ("twister2.taskscheduler.", "twister2."):
        if prefix + key in config:
            return config[prefix + key]
    return None
