"""Whether a state can go on as another graph's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_dagsched.spark.streams.carry.shapes import (
    SENTENCES,
    Mismatch,
    StateShape,
    compare_shapes,
    tell_mismatch,
)

TOTAL = StateShape("total", "value", "struct<amount:bigint>")
OPEN = StateShape("open", "map", "struct<amount:bigint>", "struct<until:timestamp>")


def test_states_go_on_that_are_declared_alike_whatever_else_there_is() -> None:
    assert compare_shapes(("total",), {"total": TOTAL, "open": OPEN}, {"total": TOTAL}) == ()
    assert compare_shapes(("total", "open"), {"total": TOTAL, "open": OPEN}, {"open": OPEN, "total": TOTAL}) == ()


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (replace(TOTAL, fields="struct<amount:double>"), "other fields"),
        (replace(TOTAL, fields="struct<sum:bigint>"), "other fields"),
        (replace(TOTAL, kind="list"), "another kind"),
        (replace(TOTAL, expires=True), "runs out"),
        (replace(TOTAL, name="sum"), "not declared"),
    ],
)
def test_a_state_that_differs_is_refused(new: StateShape, code: str) -> None:
    found = compare_shapes(("total",), {"total": TOTAL}, {new.name: new})
    assert [mismatch.code for mismatch in found] == [code]


def test_keys_of_a_map_count_too() -> None:
    found = compare_shapes(("open",), {"open": OPEN}, {"open": replace(OPEN, keys="struct<until:date>")})
    assert [mismatch.code for mismatch in found] == ["other fields"]


def test_a_state_that_the_old_graph_never_had_is_told_with_those_it_has() -> None:
    (found,) = compare_shapes(("sum",), {"total": TOTAL, "open": OPEN}, {"sum": replace(TOTAL, name="sum")})
    assert found == Mismatch("not kept", "sum", old="open, total")


@pytest.mark.parametrize("code", SENTENCES)
def test_every_refusal_names_the_step_and_a_way_out(code: str) -> None:
    told = tell_mismatch("totals", Mismatch(code, "total", "struct<a:int>", "struct<a:bigint>"))  # type: ignore[arg-type]
    assert told.startswith("step 'totals': ")
    assert told.count(": ") >= 2
