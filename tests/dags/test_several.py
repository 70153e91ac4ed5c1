"""Several launches in one run, on real Spark: each knows of those before it, and none of other dataflows'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dags.conftest import Play

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]


@pytest.fixture(scope="module")
def told(play: Play) -> dict[str, Any]:
    found = play(Path(__file__).parent / "files" / "several.py")
    assert set(found["tasks"].values()) == {"success"}
    return dict(found["told"])


def test_groups_of_one_name_do_not_mix(told: dict[str, Any]) -> None:
    assert {name: told[name] for name in ("chain.total", "one.few", "other.many")} == {
        "chain.total": sum(range(1000)),
        "one.few": 3,
        "other.many": 3000,
    }
    assert [list(told[name]["steps"]) for name in ("one.launch", "other.launch")] == [["few"], ["many"]]


def test_each_launch_foretells_what_is_left(told: dict[str, Any]) -> None:
    """The second one knows how much later, or sooner, that is."""
    first, second = (told[f"chain.launch_{step}"]["left"] for step in ("numbers", "total"))
    assert (first["groups"], first["later_s"]) == (["launch_numbers", "launch_total"], 0.0)
    assert second["groups"] == ["launch_total"]
    assert 0 < second["seconds"] < first["seconds"]
    assert second["later_s"] != 0.0
    assert told["one.launch"]["left"] == {}
