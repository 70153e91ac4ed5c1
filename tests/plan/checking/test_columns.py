"""What a plan says of columns is of datasets that there are."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.narrowed import Narrowed
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Run
from airflow_dagsched.plan.report.words import say_narrowed
from tests.plan.drawn import drawn, standalone

FLOW, CLUSTER = drawn("a == b; a == c"), standalone(1, 4)
SOME = Narrowed(src="a", dst=("b", "c"), columns=9, kept=2, share=0.1, measured=False)


@pytest.mark.parametrize("other", [{"src": "b"}, {"output": "more"}, {"dst": ("b",)}, {"kept": 9}])
def test_other_datasets_and_readers_and_all_columns_are_refused(other: dict[str, Any]) -> None:
    made = plan(FLOW, CLUSTER, run=Run(narrowed=(SOME,)))
    assert check(made, FLOW, CLUSTER) == ()
    broken = replace(made, narrowed=(replace(SOME, **other),))
    assert [found.rule for found in check(broken, FLOW, CLUSTER)] == ["columns"]


def test_of_some_rows_all_columns_may_be_there() -> None:
    some = replace(SOME, kept=9, where=("(a > 1L)",))
    made = plan(FLOW, CLUSTER, run=Run(narrowed=(some,)))
    assert check(made, FLOW, CLUSTER) == ()
    assert say_narrowed(some) == "9 of 9 columns of the rows with (a > 1L): 0.1 of the bytes, by their types"
