"""The schema files are those of the code. ``DAGSCHED_REFRESH=1`` rewrites them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

import airflow_dagsched.model
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.schemas import FORMATS, write_schema
from tests.plan.drawn import drawn, standalone

FOLDER = Path(airflow_dagsched.model.__file__).parent / "schemas"


@pytest.mark.parametrize("name", FORMATS)
def test_the_file_is_current(name: str) -> None:
    file = FOLDER / f"{name}.schema.json"
    if os.environ.get("DAGSCHED_REFRESH"):
        file.write_text(write_schema(name))
    assert file.read_text() == write_schema(name)


def test_what_we_write_fits_the_schema_and_a_stray_field_does_not() -> None:
    flow, cluster = drawn("a == b; a -- t; t -- b", tasks="t"), standalone(2)
    for name, value in {"dataflow": flow, "cluster": cluster, "plan": plan(flow, cluster)}.items():
        schema, raw = json.loads(write_schema(name)), json.loads(encode_value(value))
        jsonschema.validate({**raw, "x_mine": 1}, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**raw, "mine": 1}, schema)
