"""Steps with nothing to do: who is called all the same, and what a SQL text says of them."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.steps.pruned import end_uncalled, find_uncalled, has_no_rows
from airflow_dagsched.launch.steps.sql_facts import read_sql_facts


def spec(name: str, *inputs: str, pruned: str = "no rows") -> StepSpec:
    return StepSpec(name, "code", inputs=tuple(map(Output, inputs)), pruned=pruned)


def test_who_needs_columns_has_them() -> None:
    """a ──> b ──> count      a ──> c: all but count are pruned; c is not called"""
    steps = [spec("a"), spec("b", "a"), spec("c", "a"), spec("count", "b", pruned="")]
    assert find_uncalled(steps) == {"c"}
    assert end_uncalled(steps) == {"c": StepDone("c", "pruned", reason="no rows")}
    assert find_uncalled(steps[:3]) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("done", "nothing"),
    [
        (StepDone("s", "success", rows=0), True),
        (StepDone("s", "reused", rows=0), True),
        (StepDone("s", "pruned"), True),
        (StepDone("s", "success", rows=1), False),
        (StepDone("s", "success"), False),
        (StepDone("s", "failed", rows=0), False),
    ],
)
def test_what_is_known_to_be_empty(done: StepDone, nothing: bool) -> None:
    assert has_no_rows(done) == nothing


def test_names_of_a_text_are_the_planners() -> None:
    """A view is a dataset, a path its declared table."""
    text = "select a.x from a join parquet.`/Data/B` b using (x) where b.day = '2013-01-01'"
    facts = read_sql_facts(Call(None, (), {"a": Output("step", "good")}, text), [Table("/Data/B/"), Table("/data/c")])
    assert {key: str(condition) for key, condition in facts.conditions.items()} == {"/Data/B": "day = '2013-01-01'"}
    assert set(facts.empty_if) == {frozenset({"/Data/B"}), frozenset({"step/good"})}


def test_a_count_is_never_empty() -> None:
    assert read_sql_facts(Call(None, (), {"a": Output("a")}, "select count(*) from a"), []).empty_if == ()
