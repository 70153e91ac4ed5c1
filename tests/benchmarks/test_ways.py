"""The ways that are compared differ in what they submit, not in Java."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.managers.short_java import DRIVER, EXECUTOR, LIGHT_COMPILER, LIGHT_LOCAL
from airflow_dagsched.provider.submission import class_archive
from benchmarks import ways
from benchmarks.cases import BACKFILL, CLUSTER, FLIGHTS, TPCH, TWO_GROUPS, Case
from benchmarks.clock import Taken
from benchmarks.home import LIGHT_REMOTE, SWITCH
from benchmarks.places import LOCAL, Place
from benchmarks.ways import WAYS, Folders, Run, dataflow

PLAIN = ("per_step", "per_step_by_hand", "planned", "by_hand")
ARCHIVE = "-XX:SharedArchiveFile=there"
CLUSTERED = Place("a cluster", "spark://there", LIGHT_REMOTE)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """Settings of what is submitted, nothing of which is run; an archive is there where one is asked for."""
    found: list[Mapping[str, str]] = []

    def give(_self: Any, _submit: Any, _master: str, settings: Mapping[str, str], _environment: Any) -> Any:
        assert os.environ[SWITCH] == "auto"
        return class_archive.Given({**settings, DRIVER: f"{settings[DRIVER]} {ARCHIVE}"})

    def launch(_case: Any, _folders: Any, _place: Any, _run: str, conf: Mapping[str, str], **told: Any) -> Run:
        archive = f" {ARCHIVE}" if told.get("archive") == "auto" else ""
        found.append({**conf, DRIVER: f"{conf[DRIVER]}{archive}"})
        return Run(1.0, 1.0, 1)

    def submit(_case: Any, _folders: Any, _place: Any, conf: Mapping[str, str], _environment: Any = None) -> Run:
        found.append(conf)
        return Run(1.0, 1.0, 1)

    @contextmanager
    def end_nothing() -> Iterator[None]:
        yield

    monkeypatch.setattr(class_archive.ClassArchive, "give", give)
    monkeypatch.setattr(ways, "_launch_all", launch)
    monkeypatch.setattr(ways, "_submit_programs", submit)
    monkeypatch.setattr(ways, "ended_at_exit", end_nothing)
    return found


@pytest.mark.parametrize("name", list(WAYS))
@pytest.mark.parametrize(
    ("place", "driver", "executor"), [(LOCAL, LIGHT_LOCAL, ""), (CLUSTERED, LIGHT_COMPILER, LIGHT_COMPILER)]
)
def test_ways_that_are_compared_have_the_same_java(
    name: str, place: Place, driver: str, executor: str, said: list[Mapping[str, str]], tmp_path: Path
) -> None:
    WAYS[name](FLIGHTS, Folders(tmp_path, tmp_path / "out", tmp_path / "work"), place)
    options = ("", "") if name in PLAIN else (f"{driver} {ARCHIVE}", executor)
    assert {(settings[DRIVER], settings[EXECUTOR]) for settings in said} == {options}


def test_seconds_of_intervals_count_what_the_next_one_waits_for() -> None:
    run = ways._add_up([Taken(10.0, 12.0, 0.5), Taken(4.0, 5.0, 0.7)], 1)
    assert (run.seconds, run.cpu_s, run.applications) == (14.5, 17.0, 1)


def test_an_ordinary_task_makes_two_groups(tmp_path: Path) -> None:
    flow = dataflow(TWO_GROUPS.dag_file, TWO_GROUPS.variables(tmp_path, tmp_path, tmp_path))
    assert [set(group.steps) & {"enriched", "worst"} for group in flow.grouping.groups] == [{"enriched"}, {"worst"}]


def test_by_hand_there_is_a_submit_an_interval() -> None:
    days = [(f"{each.start:%Y-%m-%d}", f"{each.end:%Y-%m-%d}") for each in BACKFILL.intervals]
    assert (list(BACKFILL.by_hand_arguments), len(days)) == (days, 7)


def test_cases_of_one_pipeline_point_its_file_to_their_folders() -> None:
    here = Path("/here")
    assert CLUSTER.variables(here, here, here) == FLIGHTS.variables(here, here, here)


@pytest.mark.parametrize("case", [FLIGHTS, TPCH], ids=lambda case: case.name)
def test_there_is_a_program_for_each_step(case: Case, tmp_path: Path) -> None:
    flow = dataflow(case.dag_file, case.variables(tmp_path, tmp_path, tmp_path))
    at = {step: place for place, step in enumerate(case.by_hand_steps)}
    assert at.keys() == flow.steps.keys()
    assert all(at[channel.src] < at[channel.dst] for channel in flow.dataflow.channels)


def test_only_ways_with_programs_are_chosen() -> None:
    asked = ["per_step_by_hand", "planned"]
    assert (TWO_GROUPS.choose_ways(asked), CLUSTER.choose_ways(asked)) == (["planned"], asked)
