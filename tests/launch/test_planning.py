"""One value of facts, one plan: equal digests give equal bytes, and no fact is without a trace in the digest."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.launch.planning.facts import Facts, Origin, narrow_to_steps, remove_pins
from airflow_dagsched.launch.planning.plan_facts import digest_facts
from airflow_dagsched.launch.planning.plan_run import plan_run
from airflow_dagsched.launch.planning.submissions import add_settings
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import Connection, Measured, State
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.grouping.coarsest import find_groups
from airflow_dagsched.plan.plan_types import WorkShares
from airflow_dagsched.plan.problem.run import FixedGroup, Policy
from airflow_dagsched.plan.pruning import name_interval
from airflow_dagsched.plan.pruning.pruning_input import PruningInput
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone

DAY = datetime(2024, 1, 1, tzinfo=UTC)
FACTS = Facts(
    dataflow=drawn("a == b; b == c", a={"runtime_s": 5.0, "pinned": ("w1",)}, b={"runtime_s": 9.0}),
    cluster=standalone(4, 2),
    policy=Policy("auto", PlacementSettings(), State()),
    groups=(FixedGroup("x", ("a",), "why"), FixedGroup("y", ("b", "c"), "why")),
    history=State(measured={"a": Measured(runtime_s=3.0)}, runs=("r1", "r2")),
    connection="spark",
)


def facts_of(flow: Dataflow, cluster: Cluster) -> Facts:
    groups = tuple(FixedGroup(one.id, one.steps, one.reason) for one in find_groups(flow).groups)
    return Facts(dataflow=flow, cluster=cluster, groups=groups, policy=Policy("auto", PlacementSettings(), State()))


def shuffled(facts: Facts, seed: int) -> Facts:
    rng, flow = random.Random(seed), facts.dataflow
    lists = {name: list(getattr(flow, name)) for name in ("steps", "channels", "tasks", "dependencies")}
    workers, groups = list(facts.cluster.workers), list(facts.groups or ())
    for one in (*lists.values(), workers, groups):
        rng.shuffle(one)
    return replace(
        facts,
        dataflow=replace(flow, **{name: tuple(one) for name, one in lists.items()}),
        cluster=replace(facts.cluster, workers=tuple(workers)),
        groups=tuple(groups),
    )


@given(dataflows(25), clusters(), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_equal_facts_in_any_order_give_equal_bytes(flow: Dataflow, cluster: Cluster, seed: int) -> None:
    facts = facts_of(flow, cluster)
    made, other = plan_run(facts), plan_run(shuffled(facts, seed))
    assert made.plan.facts is not None
    assert made.plan.facts == other.plan.facts
    assert encode_value(made.plan) == encode_value(other.plan)
    assert check(made.plan, made.dataflow, made.cluster, made.settings) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"dataflow": drawn("a == b; b == c", a={"runtime_s": 5.5})},
        {"cluster": standalone(4, 3)},
        {"settings": Settings(slots=1)},
        {"policy": Policy("cheapest", PlacementSettings(), State())},
        {"policy": Policy("auto", PlacementSettings(ram_padding_mb=1.0), State())},
        {"policy": None},
        {"groups": None},
        {"groups": ()},
        {"groups": (FixedGroup("x", ("a", "b"), "why"), FixedGroup("y", ("c",), "why"))},
        {"history": State(connections={"spark": Connection(application_start_s=1.0)})},
        {"connection": "other"},
        {"pruning": PruningInput(names=name_interval(DAY, None, "k"))},
        {"pruning": PruningInput(empty=frozenset({"a/"}))},
        {"pruning": PruningInput(mode=False)},
        {"selections": {}},
        {"author": {"a": {"spark.executor.cores": "2"}}},
        {"origin": Origin(room="free")},
        {"origin": Origin(beside=("other",))},
        {"origin": Origin(behind=("other",))},
        {"origin": Origin(interval="k")},
    ],
    ids=str,
)
def test_each_fact_is_in_the_digest(change: dict[str, Any]) -> None:
    assert digest_facts(replace(FACTS, **change)) != digest_facts(FACTS)


def test_a_plan_names_its_facts() -> None:
    told = plan_run(FACTS).plan.facts
    assert told is not None
    assert (told.policy, told.connection, told.prune, told.history) == ("auto", "spark", "auto", ("r1", "r2"))
    assert (told.cluster, told.room, told.groups, told.pins) == ("declared", "whole", "planner", "kept")
    alone = plan_run(remove_pins(narrow_to_steps(FACTS, ("a", "b")))).plan
    assert alone.facts is not None
    assert ([group.steps for group in alone.groups], alone.facts.groups, alone.facts.pins) == (
        [("a", "b")],
        "run",
        "given up",
    )


def test_a_plan_says_how_much_of_its_work_is_known() -> None:
    """3 of 13 core-seconds measured, 9 declared, 1 assumed."""
    told = plan_run(FACTS).plan.work
    shares = {"measured": 0.230769, "declared": 0.692308, "assumed": 0.076923}
    assert told == WorkShares(**shares, assumed_s=1, assumed_steps=1, assumed_task_s=10)


def test_printed_settings_are_of_each_group() -> None:
    made = add_settings(plan_run(FACTS))
    first = made.groups[0]
    assert first.settings["spark.executor.cores"] == str(first.containers[0].cores)
    assert first.settings["spark.cores.max"] == str(sum(box.cores for box in first.containers))


SEARCHES = {"plan", "plan_exactly", "plan_groups", "run_passes", "search_groupings", "search_problem", "select_groups"}


def list_planners(file: Path) -> list[str]:
    """Functions of the planner that the file calls by itself."""
    tree = ast.parse(file.read_text())
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    ours = {
        name.asname or name.name
        for node in imports
        if (node.module or "").startswith("airflow_dagsched.plan.")
        for name in node.names
        if name.name in SEARCHES
    }
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return sorted(ours & called)


def test_only_one_function_asks_the_planner() -> None:
    """Parse, launch, command and hook make facts, and hand them to it."""
    files = [file for room in ("provider", "launch") for file in Path("airflow_dagsched", room).rglob("*.py")]
    assert {str(file): found for file in files if (found := list_planners(file))} == {}


def test_who_asks_the_planner_is_found(tmp_path: Path) -> None:
    file = tmp_path / "direct.py"
    file.write_text("from airflow_dagsched.plan.planner import plan\nplan(1, 2)\n")
    assert list_planners(file) == ["plan"]


def test_a_parse_plans_by_facts_without_the_other_passes() -> None:
    """What places containers is loaded by none of it: a DAG file is parsed often."""
    told = """
import sys
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.launch.planning.planned import plan_with
from airflow_dagsched.plan.passes.select_groups import plan_groups
from tests.plan.drawn import drawn, standalone
made = plan_with(Facts(dataflow=drawn("a == b"), cluster=standalone(4)), plan_groups).plan
assert made.facts.groups == "planner"
assert "airflow_dagsched.plan.passes.apply_policy" not in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0
