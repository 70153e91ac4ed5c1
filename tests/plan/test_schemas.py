"""The schema files are those of the code. ``DAGSCHED_REFRESH=1`` rewrites them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import msgspec
import pytest

import airflow_dagsched.model
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.placement.settings import SPARK, PlacementSettings
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.schemas import FORMATS, write_schema
from airflow_dagsched.plan.settings import DEFAULTS
from airflow_dagsched.plan.settings_file import SHARED, read_settings
from tests.plan.drawn import drawn, standalone

FOLDER = Path(airflow_dagsched.model.__file__).parent / "schemas"


@pytest.mark.parametrize("name", FORMATS)
def test_the_file_is_current(name: str) -> None:
    file = FOLDER / f"{name}.schema.json"
    if os.environ.get("DAGSCHED_REFRESH"):
        file.write_text(write_schema(name))
    assert file.read_text() == write_schema(name)


def test_the_settings_file_has_what_the_command_takes(tmp_path: Path) -> None:
    """All that the two tables in the docs have, and Twister2's keys."""
    schema, file = json.loads(write_schema("settings")), tmp_path / "settings.json"
    told = {name: getattr(SPARK, name) for name in PlacementSettings.__struct_fields__ if name not in SHARED}
    told |= json.loads(encode_value(DEFAULTS)) | {"slots": 4, "x_mine": 1}
    keys = {"twister2.ram.padding.container": 5, "twister2.taskscheduler.task.instances": 3}
    for said in (told, keys):
        jsonschema.validate(json.loads(msgspec.json.encode(said)), schema)
        file.write_bytes(msgspec.json.encode(said))
        read_settings(file)
    for wrong in ({"mine": 1}, {"num_standbys": -1}, {"twister2.task.instances": 0}, {"twister2.mine": 1}):
        file.write_bytes(msgspec.json.encode(wrong))
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
        with pytest.raises(InvalidInput):
            read_settings(file)


def test_what_we_write_fits_the_schema_and_a_stray_field_does_not() -> None:
    flow, cluster = drawn("a == b; a -- t; t -- b", tasks="t"), standalone(2)
    for name, value in {"dataflow": flow, "cluster": cluster, "plan": plan(flow, cluster)}.items():
        schema, raw = json.loads(write_schema(name)), json.loads(encode_value(value))
        jsonschema.validate({**raw, "x_mine": 1}, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**raw, "mine": 1}, schema)
