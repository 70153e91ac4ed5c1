"""What the provider registers with Airflow."""

from __future__ import annotations

from typing import Any


def _describe_option(
    description: str, default: str, kind: str = "string", example: str | None = None
) -> dict[str, Any]:
    return {
        "description": description,
        "version_added": "0.1.0",
        "type": kind,
        "example": example,
        "default": default,
    }


_OPTIONS = {
    "enabled": _describe_option(
        "False runs every step as its own spark-submit, by the same launch tasks.", "True", "boolean"
    ),
    "work_dir": _describe_option(
        "Folder for manifests, events, commits and datasets, if a dataflow names none.", "", example="/data/dagsched"
    ),
    "retention_days": _describe_option(
        "Days after which `airflow dagsched clean` removes what nobody reads any more.", "30", "float"
    ),
    "cache_dir": _describe_option(
        "Folder for what this host can make again; default: dagsched in the user's own.",
        "",
        example="/var/cache/dagsched",
    ),
    "class_archive": _describe_option(
        "auto makes and uses archives of the classes that drivers load, off does not.", "auto", example="off"
    ),
    "warm": _describe_option(
        "How long applications stay when their groups have ended; empty: none does.", "", example="10 minutes"
    ),
    "warm_runs": _describe_option("Runs that a warm application serves, at most.", "50", "integer"),
    "warm_idle": _describe_option("Warm applications that wait on a host at once, at most.", "4", "integer"),
    "executor_class_archive": _describe_option(
        "Archive of classes on the hosts of executors, made by dagsched class-archive.", "", example="/opt/spark.jsa"
    ),
}


def get_provider_info() -> dict[str, Any]:
    """The provider's description, as Airflow's provider schema wants it."""
    return {
        "package-name": "airflow-dagsched",
        "name": "dagsched",
        "description": "Runs a DAG of PySpark steps as few Spark applications, planned by the cluster it runs on.",
        "task-decorators": [
            {"name": "spark_step", "class-name": "airflow_dagsched.provider.authoring.steps.spark_step"},
            {
                "name": "spark_stream_source",
                "class-name": "airflow_dagsched.provider.authoring.streams.steps.spark_stream_source",
            },
            {
                "name": "spark_stream_sink",
                "class-name": "airflow_dagsched.provider.authoring.streams.steps.spark_stream_sink",
            },
        ],
        "cli": ["airflow_dagsched.provider.commands.cli.commands"],
        "config": {
            "dagsched": {
                "description": "Settings of airflow_dagsched.",
                "options": _OPTIONS,
            }
        },
    }
