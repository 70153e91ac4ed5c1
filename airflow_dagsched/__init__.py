"""Runs a DAG of PySpark steps as few Spark applications, planned by the cluster it runs on.

The public names are loaded when used: the package is imported by every parse of a DAG file, by the
driver program on the cluster (no Airflow there) and by the ``dagsched`` command (neither Airflow nor Spark).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_dagsched.launch.protocol.interval import Interval as Interval
    from airflow_dagsched.launch.protocol.tables import Table as Table
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow as SparkDataflow
    from airflow_dagsched.provider.authoring.steps import SparkSqlStep as SparkSqlStep
    from airflow_dagsched.provider.clusters.planner_hook import PlannerHook as PlannerHook
    from airflow_dagsched.provider.spec.channel_declaration import channel as channel
    from airflow_dagsched.provider.streaming.stream_epochs import StreamEpochs as StreamEpochs
    from airflow_dagsched.version import __version__ as __version__

_HOMES = {
    "__version__": "version",
    "Interval": "launch.protocol.interval",
    "PlannerHook": "provider.clusters.planner_hook",
    "SparkDataflow": "provider.authoring.dataflow",
    "SparkSqlStep": "provider.authoring.steps",
    "StreamEpochs": "provider.streaming.stream_epochs",
    "Table": "launch.protocol.tables",
    "channel": "provider.spec.channel_declaration",
}
__all__ = ["Interval", "PlannerHook", "SparkDataflow", "SparkSqlStep", "StreamEpochs", "Table", "channel"]


# PEP 562: called for a name that is not there yet.
def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
