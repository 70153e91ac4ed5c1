"""JSON files: what is read, what is refused and how, what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.codec import check_value, decode_json, digest_dataflow, encode_value, format_json, read_file
from airflow_dagsched.model.dataflow import Dataflow, Partition, Source, Step
from airflow_dagsched.model.state import Measured, MeasuredOutput, State, apply_measured
from tests.plan.drawn import dataflows, drawn


@pytest.mark.parametrize(
    ("text", "field", "rule"),
    [
        ('{"name": "x", "steps": [{"id": "a", "foo": 1}]}', "steps[0].foo", "unknown field"),
        ('{"name": "x", "foo": 1}', "foo", "unknown field"),
        ('{"name": "x", "steps": [{}]}', "steps[0].id", "required field is missing"),
        ('{"name": "x", "steps": [{"id": "a"}, {"id": "b", "cores": 0}]}', "steps[1].cores", "Expected `int` >= 1"),
        ('{"name": "x", "steps": [{"id": "a", "cores": "1"}]}', "steps[0].cores", "Expected `int`, got `str`"),
        ('{"name": "x", "steps": [{"id": "a", "mode": "fast"}]}', "steps[0].mode", "Invalid enum value 'fast'"),
        ('{"name": "x", "steps": [{"id": ""}]}', "steps[0].id", "Expected `str` of length >= 1"),
        ('{"name": "x", "dependencies": [["a"]]}', "dependencies[0]", "Expected `array` of length 2"),
        ('{"name": "x", "version": 2}', "version", "Invalid enum value 2"),
        ('{"name": "x", "steps": [{"id": "a", "runtime_s": 1e999}]}', "steps[0].runtime_s", "Number out of range"),
        ('{"name": "x"', "", "Input data was truncated"),
        ("[]", "", "Expected `object`, got `array`"),
        ('{"name": NaN}', "name", "JSON is malformed: invalid character (byte 9)"),
        ('{"name": "x", "x_deep": ' + "[" * 100_000 + "]" * 100_000 + "}", "", "JSON is nested too deeply"),
    ],
)
def test_bad_input_names_file_field_and_rule(text: str, field: str, rule: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode_json(Dataflow, text.encode(), "flow.json")
    found = refused.value
    assert (found.where, found.rule) == ("flow.json", rule)
    assert found.field in (field, "")
    assert "\n" not in str(found)


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.json: cannot be read: No such file"):
        read_file(Dataflow, tmp_path / "none.json")


def test_foreign_keys_are_dropped_from_fields_and_kept_in_mappings() -> None:
    raw = {
        "name": "n",
        "x_owner": {"a": [1]},
        "steps": [{"id": "a", "x_note": 1, "application": {"x_setting": 2}}],
        "channels": [],
    }
    found = decode_json(Dataflow, json.dumps(raw).encode(), "flow.json")
    assert found == Dataflow(name="n", steps=(Step(id="a", application={"x_setting": 2}),))


def test_a_foreign_key_in_a_mapping_of_values_is_dropped() -> None:
    raw = {"measured": {"x_step": {"runtime_s": 1, "x_by": "me"}}}
    assert decode_json(State, json.dumps(raw).encode(), "s") == State(measured={"x_step": Measured(runtime_s=1.0)})


@settings(max_examples=50)
@given(dataflows(most=30))
def test_a_dataflow_survives_its_file(flow: Dataflow) -> None:
    assert (
        decode_json(Dataflow, encode_value(flow), "f")
        == decode_json(Dataflow, format_json(flow).encode(), "f")
        == check_value(Dataflow, flow, "f")
    )


def test_values_made_in_python_are_checked_too() -> None:
    with pytest.raises(InvalidInput, match=r"flow: steps\[0\].cores: Expected `int` >= 1"):
        check_value(Dataflow, Dataflow(name="n", steps=(Step(id="a", cores=0),)), "flow")
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        check_value(Dataflow, Dataflow(name="n", steps=(Step(id="a", application={"m": object()}),)), "flow")  # type: ignore[dict-item]


def test_the_digest_ignores_the_order_of_arrays_and_of_keys() -> None:
    one = Step(id="a", application={"p": 1, "q": 2}, pinned=("w2", "w10"))
    other = Step(id="a", application={"q": 2, "p": 1}, pinned=("w10", "w2"))
    assert digest_dataflow(Dataflow(name="n", steps=(one, Step(id="b")))) == digest_dataflow(
        Dataflow(name="n", steps=(Step(id="b"), other))
    )


def test_the_digest_ignores_partition_listings_but_not_sources() -> None:
    def flow(*sources: Source) -> Dataflow:
        return Dataflow(name="n", steps=(Step(id="a", sources=sources),))

    listed = Source(path="/data", partitions=(Partition(key={"day": "1"}, bytes=5),))
    assert digest_dataflow(flow(listed)) == digest_dataflow(flow(Source(path="/data"))) != digest_dataflow(flow())


def test_measured_values_replace_estimates() -> None:
    flow = drawn("a == b", a={"runtime_s": 1, "memory_mb": 100}, b={"memory_mb": 100})
    state = State(measured={"a": Measured(runtime_s=9, memory_mb=50, bytes=7), "b": Measured(memory_mb=300)})
    found = apply_measured(flow, state)
    assert [(step.runtime_s, step.memory_mb) for step in found.steps] == [(9, 100), (0, 300)]
    assert found.channels[0].bytes == 7
    assert digest_dataflow(found) == digest_dataflow(flow)


STORED, COUNTED = MeasuredOutput(bytes=6, assumed_bytes=4), MeasuredOutput(assumed_bytes=4)


@pytest.mark.parametrize(
    ("seen", "declared", "found"),
    [
        (Measured(outputs={"": STORED}), 0, 6),
        (Measured(outputs={"": STORED}), 5, 5),
        (Measured(outputs={"": STORED}, stored={"": 9}), 5, 9),
        (Measured(outputs={"": COUNTED}), 0, 4),
        (Measured(outputs={"": COUNTED}, bytes=7), 0, 7),
        (Measured(outputs={"x": STORED}), 0, 0),
        (Measured(stored={"": 0}), 5, 0),
    ],
)
def test_bytes_of_a_channel(seen: Measured, declared: int, found: int) -> None:
    """What the run holds, else the author's word, else as stored before, else rows times width, else nothing."""
    flow = drawn("a == b", size={"a": declared})
    assert apply_measured(flow, State(measured={"a": seen})).channels[0].bytes == found
