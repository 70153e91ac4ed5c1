"""The pages people read, as golden text. ``DAGSCHED_REFRESH=1`` rewrites the files in ``golden/``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from airflow_dagsched.model.codec import format_json
from airflow_dagsched.model.state import KeptColumns, Measured, MeasuredOutput, State
from airflow_dagsched.plan.measurements import list_narrowed
from airflow_dagsched.plan.plan_types import Pruned
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Run
from airflow_dagsched.plan.report.page import explain_plan
from airflow_dagsched.plan.report.picture import draw_dot, draw_svg
from tests.plan.drawn import drawn, standalone

GOLDEN = Path(__file__).parent / "golden"
FLOW = drawn(
    "load == clean; clean == report; clean -- approve; approve -- report; rates == report; clean == audit",
    tasks="approve",
    size={"clean": 300 * 2**20},
    load={"parallelism": 6, "runtime_s": 40, "memory_mb": 700},
    audit={"isolate": True},
)
"""
load ══> clean ══════════════> report <══ rates
         ├──> (approve) ──────>┘
         └══> audit (isolated)
"""
PLAN = plan(FLOW, standalone(4, 8))
READ = State(
    measured={
        "clean": Measured(outputs={"": MeasuredOutput(columns=KeptColumns(columns=36, kept=7, share=0.197))}),
        "rates": Measured(
            outputs={"": MeasuredOutput(columns=KeptColumns(columns=9, kept=8, share=0.6, measured=True))}
        ),
    }
)
TEXTS = {
    "columns.txt": explain_plan(plan(FLOW, standalone(4, 8), run=Run(narrowed=list_narrowed(FLOW, READ)))),
    "plan.txt": explain_plan(PLAN),
    "plan.dot": draw_dot(PLAN),
    "plan.svg": draw_svg(PLAN),
    "plan.json": format_json(PLAN),
}


@pytest.mark.parametrize("name", TEXTS)
def test_golden_text(name: str) -> None:
    file = GOLDEN / name
    if os.environ.get("DAGSCHED_REFRESH"):
        file.write_text(TEXTS[name])
    assert TEXTS[name] == file.read_text()


def test_what_is_pruned_is_told_with_its_reason() -> None:
    group = replace(PLAN.groups[0], pruned=(Pruned(what="worker", id="w9", reason="holds no block"),))
    assert "  pruned   worker w9: holds no block\n" in explain_plan(replace(PLAN, groups=(group,), spills=()))


def test_dot_quotes_what_people_write() -> None:
    assert 'digraph "a \\"b\\" \\\\ c" {' in draw_dot(replace(PLAN, dataflow='a "b" \\ c'))
