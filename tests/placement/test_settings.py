"""Settings of the policies: two sets of defaults, Twister2's keys, one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policies.auto import choose_policy
from airflow_dagsched.placement.policy import load_policy
from airflow_dagsched.placement.request import make_request
from airflow_dagsched.placement.settings import (
    SPARK,
    PlacementSettings,
    parse_settings,
    render_settings_table,
)
from airflow_dagsched.placement.values import Offer


@pytest.mark.parametrize("prefix", ["twister2.", "twister2.taskscheduler."])
def test_twister2s_keys_are_aliases(prefix: str) -> None:
    said = {f"{prefix}ram.padding.container": 3, f"{prefix}disk.padding.container": 4, f"{prefix}task.instances": 5}
    made = parse_settings(said)
    assert (made.ram_padding_mb, made.disk_padding_mb, made.instances_per_container) == (3, 4, 5)


def test_the_compatible_mode_has_twister2s_defaults() -> None:
    made = parse_settings({"twister2_compatible": True})
    assert (made.ram_padding_mb, made.disk_padding_mb, made.cpu_padding) == (2, 12, 1)
    assert (made.instance_memory_mb, made.instance_disk_mb, made.instance_cores) == (512, 500, 2)
    assert (made.instances_per_container, made.container_size) == (2, "offered")
    assert (made.container_memory_mb, made.container_disk_mb, made.container_cpu) == (1024, 1000, 4)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({"ram_padding_mb": "much"}, "ram_padding_mb: Expected `float`"),
        ({"rack_share": 2}, "rack_share: Expected `float` <= 1"),
        ({"no_such": 1}, "no_such: unknown field"),
        ({"twister2.no.such": 1}, "twister2.no.such: unknown field"),
        ({"twister2.task.instances": 1, "instances_per_container": 2}, "a second time"),
    ],
)
def test_bad_settings_are_refused(said: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_settings(said)
    assert rule in str(refused.value)


def test_the_table_has_a_row_for_each() -> None:
    rows = render_settings_table().splitlines()[2:]
    assert sorted(row.split("`")[1] for row in rows) == sorted(PlacementSettings.__struct_fields__)
    assert "| `ram_padding_mb` | 384.0 | 2.0 | MiB | 0 to 1,000,000,000 |" in render_settings_table()


@pytest.mark.parametrize("name", ["magic", "no.such.Thing", "airflow_dagsched.placement.values.Offer"])
def test_what_is_no_policy_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="polic"):
        load_policy(name, SPARK)


@pytest.mark.parametrize(
    ("step", "cores", "name"),
    [
        ({"mode": "streaming", "stateful": True}, 8, "high_availability"),
        ({"parallelism": 4}, 8, "cheapest"),
        ({"parallelism": 4}, 2, "first_fit"),
    ],
)
def test_auto_takes_what_suits(step: dict[str, Any], cores: int, name: str) -> None:
    offer = Offer(id="w", worker="w", cores=cores, memory_mb=9000)
    request = make_request(Dataflow(name="d", steps=(Step(id="a", **step),)), [offer], SPARK)
    assert choose_policy(request)[0] == name


def test_the_reason_says_what_auto_took() -> None:
    made = load_policy("auto", SPARK).schedule(
        Dataflow(name="d", steps=(Step(id="a"),)), [Offer(id="w", worker="w", cores=1, memory_mb=900)], State()
    )
    assert made.reason == "cheapest, since everything fits at once: least cost of cores and of bytes moved"


def test_the_docs_have_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "placement.md").read_text()
    assert render_settings_table() in text
