"""The TPC-H pipeline is what the benchmark says it is."""

from __future__ import annotations

from pathlib import Path

from benchmarks.cases import TPCH
from benchmarks.ways import dataflow


def test_one_application_of_at_least_twenty_steps(tmp_path: Path) -> None:
    flow = dataflow(TPCH.dag_file, TPCH.variables(tmp_path, tmp_path, tmp_path))
    assert len(flow.steps) >= 20
    assert len(flow.grouping.groups) == 1


def test_every_report_is_written_by_a_step(tmp_path: Path) -> None:
    """Tables that are compared are the ones the steps declare."""
    flow = dataflow(TPCH.dag_file, TPCH.variables(tmp_path, tmp_path, tmp_path))
    written = {Path(step.declared.writes.location).name for step in flow.steps.values() if step.declared.writes}
    assert written == set(TPCH.reports)
