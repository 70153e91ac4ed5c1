"""The ways that are compared differ in what they submit, not in Java."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import ways
from benchmarks.cases import FLIGHTS
from benchmarks.home import JAVA_OPTIONS
from benchmarks.ways import WAYS, Folders, Run


@pytest.mark.parametrize(("compared", "options"), [("", ""), ("_light", "-XX:TieredStopAtLevel=1")])
def test_ways_that_are_compared_have_the_same_java(
    compared: str, options: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[Mapping[str, str]] = []
    switches: list[str] = []

    def record(_case: Any, _folders: Any, *given: Any, archive: str = "off") -> Run:
        said.append(next(each for each in given if isinstance(each, Mapping)))
        switches.append(archive)
        return Run(1.0, 1.0, 1)

    monkeypatch.setattr(ways, "give_archive", lambda conf: (switches.append("auto"), conf)[1])

    monkeypatch.setattr(ways, "_launched", record)
    monkeypatch.setattr(ways, "_submit_program", record)
    for name in (name for name in WAYS if name.endswith("_light") == bool(compared)):
        WAYS[name](FLIGHTS, Folders(tmp_path, tmp_path, tmp_path))
    assert {settings[JAVA_OPTIONS] for settings in said} == {options}
    assert switches.count("auto") == (2 if compared else 0), "planned and by hand"
