"""The JSON schemas of the file formats, generated from the values; kept as files beside the model."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.ranges import Value
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.settings import ALIASES, PlacementSettings
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.settings import Settings

FORMATS: dict[str, type[Value]] = {
    "cluster": Cluster,
    "dataflow": Dataflow,
    "plan": Plan,
    "settings": Settings,
    "state": State,
}


def write_schema(name: str) -> str:
    """The schema of the format called ``name``, as the text of its file."""
    schema = msgspec.json.schema(FORMATS[name])
    if FORMATS[name] is Settings:
        _add_policy_settings(schema["$defs"]["Settings"])
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_allow_foreign(schema)}
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def _add_policy_settings(planner: dict[str, Any]) -> None:
    """The policies' settings, by their names and Twister2's: one flat file has them beside the planner's."""
    policies = msgspec.json.schema(PlacementSettings)["$defs"]["PlacementSettings"]["properties"]
    planner["properties"] = {**policies, **planner["properties"]}
    planner["patternProperties"] = {
        rf"^twister2\.(taskscheduler\.)?{re.escape(key)}$": policies[name] for key, name in ALIASES.items()
    }


def _allow_foreign(schema: Any) -> Any:
    """Objects with named fields also take keys that start with ``x_``."""
    if isinstance(schema, list):
        return [_allow_foreign(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _allow_foreign(value) for key, value in schema.items()}
    # Unknown fields are refused with their path, but for the author's own.
    patterns = {**found.get("patternProperties", {}), "^x_": {}}
    return {**found, "patternProperties": patterns} if schema.get("additionalProperties") is False else found
