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
                    "retention_days": {
                        "description": "Days after which `airflow dagsched clean` removes what nobody reads any more.",
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": None,
                        "default": "30",
                    },
                    "cache_dir": {
                        "description": "Folder for what this host can make again; default: dagsched in the user's own.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/var/cache/dagsched",
                        "default": "",
                    },
                    "class_archive": {
                        "description": "auto makes and uses archives of the classes that drivers load, off does not.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "off",
                        "default": "auto",
                    },
                    "executor_class_archive": {
                        "description": "Archive of classes on the hosts of executors, made by dagsched class-archive.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/opt/spark/executor.jsa",
                        "default": "",
                    },
                },
            }
        },
    }
