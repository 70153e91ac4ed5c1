"""The table of versions says what is installed, allowed, tested and refused elsewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from airflow_dagsched.launch.managers.spark_versions import BROKEN, FIT, OLDEST, TOO_NEW, judge_version

ROOT = Path(__file__).parents[2]
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
ENDS = [line for line in (ROOT / "tools" / "spark_versions.txt").read_text().split("\n") if line and line[0] != "#"]
ALLOWED = {
    each.name: each.specifier
    for each in map(Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
}


def row(what: str) -> list[str]:
    """Tested, works, refused."""
    lines = (ROOT / "docs" / "versions.md").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith(f"| {what} |"))
    return [cell.strip() for cell in found.strip("|").split("|")[1:]]


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)+", text)


def test_tested_sparks() -> None:
    assert numbers(row("Spark")[0]) == [PINS["pyspark"], *ENDS]
    assert PINS["pyspark"] == FIT


def test_refused_sparks() -> None:
    """The same ones for pip, for a launch, and on the page; and none of those that are tested."""
    assert set(BROKEN) <= set(numbers(row("Spark")[2]))
    for version in [*BROKEN, "3.5.9", "5.0.0"]:
        assert version not in ALLOWED["pyspark"]
        assert judge_version(version) is not None
    for version in [PINS["pyspark"], *ENDS]:
        assert version in ALLOWED["pyspark"]
        assert judge_version(version) is None


def test_the_ends_of_the_range() -> None:
    """The first release of the oldest line is tested, so is one above the version that all tests run on."""
    first, *_, last = sorted(ENDS, key=lambda text: tuple(map(int, text.split("."))))
    assert first == ".".join(map(str, (*OLDEST, 0)))
    assert numbers(row("Spark")[1]) == [".".join(map(str, OLDEST))]
    assert f"below {TOO_NEW[0]}" in row("Spark")[1]
    assert tuple(map(int, last.split("."))) > tuple(map(int, FIT.split(".")))


@pytest.mark.parametrize(
    ("what", "package"),
    [("Airflow", "apache-airflow"), ("Airflow's Spark provider", "apache-airflow-providers-apache-spark")],
)
def test_airflow(what: str, package: str) -> None:
    tested, works, _ = row(what)
    assert tested == PINS[package]
    (oldest,) = numbers(works)
    assert {f">={oldest}", f"<{works.split()[-1]}"} == set(map(str, ALLOWED[package]))
