"""What the provider registers with Airflow."""

from __future__ import annotations

from typing import Any


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
                "options": {
                    "enabled": {
                        "description": "False runs every step as its own spark-submit, by the same launch tasks.",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": None,
                        "default": "True",
                    },
                    "work_dir": {
                        "description": "Folder for manifests, events, commits and datasets, if a dataflow names none.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/data/dagsched",
                        "default": "",
                    },
                    "cache_dir": {
                        "description": "Private folder of this user for what costs time to make again.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/var/cache/dagsched",
                        "default": "",
                    },
                    "warm": {
                        "description": "How long applications stay when their groups have ended; empty: none does.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "10 minutes",
                        "default": "",
                    },
                    "warm_runs": {
                        "description": "Runs that a warm application serves, at most.",
                        "version_added": "0.1.0",
                        "type": "integer",
                        "example": None,
                        "default": "50",
                    },
                    "retention_days": {
                        "description": "Days after which `airflow dagsched clean` removes what nobody reads any more.",
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": None,
                        "default": "30",
                    },
                },
            }
        },
    }
