"""Emptiness spreads; what works without input does not stop."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Dataflow, Partition, Source
from airflow_dagsched.model.graph import build_graph
from airflow_dagsched.plan.pruning.apply import select_all
from airflow_dagsched.plan.pruning.emptiness import Causes
from airflow_dagsched.plan.pruning.pruning_input import PruningInput
from airflow_dagsched.plan.pruning.steps import find_idle_steps
from airflow_dagsched.plan.report.sentences import say_idle
from tests.plan.drawn import dataflows, drawn

IDLE: dict[str, Any] = {"works_without_input": False}
EMPTY = {"sources": (Source(path="/e", where="day = 2", partitions=(Partition(key={"day": 1}),)),), **IDLE}
FULL = {"sources": (Source(path="/f", where="day = 1", partitions=(Partition(key={"day": 1}),)),), **IDLE}


def idle(flow: Dataflow, **known: Any) -> dict[str, str]:
    graph = build_graph(flow)
    found = find_idle_steps(graph, select_all(graph, PruningInput()), PruningInput(**known))
    return {step: say_idle(reason) for step, reason in found.steps.items()}


def test_a_chain_of_steps_that_do_nothing_without_rows() -> None:
    """(nothing) ──> a ══> b ══> c     c counts: it runs and writes its 0"""
    found = idle(drawn("a == b; b == c", a=EMPTY, b=IDLE))
    assert found == {
        "a": "no work without input: nothing in /e matches day = 2",
        "b": "no work without input: step 'a' has nothing to do",
    }


@pytest.mark.parametrize(("needs", "expected"), [("all", ["a", "c"]), ("any", ["a"])])
def test_a_join_needs_all_and_a_union_any(needs: str, expected: list[str]) -> None:
    """(nothing) ──> a ══> c <══ b <── (rows)"""
    assert list(idle(drawn("a == c; b == c", a=EMPTY, b=FULL, c={**IDLE, "needs": needs}))) == expected


def test_a_union_of_nothing_is_nothing() -> None:
    assert list(idle(drawn("a == c; b == c", a=EMPTY, b=EMPTY, c={**IDLE, "needs": "any"}))) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("causes", "expected"), [((), False), ((frozenset({"a/"}),), True), ((frozenset({"b/"}),), False)]
)
def test_sql_may_know_better(causes: Causes, expected: bool) -> None:
    """A left join of b and an empty a has rows, of a and b none; a count always."""
    flow = drawn("a == c; b == c", a=EMPTY, b=FULL, c=IDLE)
    assert ("c" in idle(flow, empty_if={"c": causes})) == expected


def test_steps_that_always_run() -> None:
    """Without inputs, with sources that are not listed, streaming, repeated."""
    flow = drawn("a == b", a=IDLE, b=IDLE, c={"sources": (Source(path="/x", where="day = 1"),), **IDLE})
    assert idle(flow) == {}
    assert idle(
        drawn("a == b; a == c", a=EMPTY, b={**IDLE, "mode": "streaming"}, c={**IDLE, "repeat": True})
    ).keys() == {"a"}


def test_an_ordinary_task_carries_no_rows() -> None:
    assert idle(drawn("a == b; a -- t; t -- c", tasks="t", a=EMPTY, b=IDLE, c=IDLE)).keys() == {"a", "b"}


def test_rows_that_nobody_needs() -> None:
    """(nothing) ──> a ══> join <══ b <══ c     b and c have rows; nobody but steps without work reads them"""
    flow = drawn("a == join; b == join; c == b", a=EMPTY, b={**FULL, **IDLE}, c=IDLE, join=IDLE)
    assert idle(flow).keys() == {"a", "join"}
    found = idle(flow, only_rows=frozenset({"b", "c"}))
    assert found["b"] == "all that read its rows have nothing to do: join"
    assert found.keys() == {"a", "b", "c", "join"}


def test_what_an_earlier_group_left_empty() -> None:
    assert idle(drawn("a ~~ b", b=IDLE), empty=frozenset({"a/"})) == {"b": "no work without input: a/ has no rows"}


@settings(max_examples=60, deadline=None)
@given(dataflows(most=40), st.integers(0, 2**32))
def test_against_rows_counted_one_by_one(flow: Dataflow, seed: int) -> None:
    """Oracle: run it. A source has a row or none; a step passes one on if it may."""
    rng = random.Random(seed)
    sources = {True: FULL["sources"], False: EMPTY["sources"]}
    steps = tuple(
        replace(
            step,
            sources=sources[rng.random() < 0.3] if rng.random() < 0.5 else (),
            works_without_input=rng.random() < 0.1,
            needs=rng.choice(["all", "any"]),
        )
        for step in flow.steps
    )
    flow = replace(flow, steps=steps)
    graph = build_graph(flow)
    rows: dict[str, bool] = {}
    for node in graph.order:
        if graph.is_step(node):
            step = graph.steps[node]
            reads = {channel.src for channel in flow.channels if channel.dst == step.id}
            inputs = [rows.get(src, True) for src in reads] + [source.path == "/f" for source in step.sources]
            has = (all if step.needs == "all" else any)(inputs) if inputs else True
            rows[step.id] = step.works_without_input or step.repeat or has
    assert idle(flow).keys() == {step for step, has in rows.items() if not has}
