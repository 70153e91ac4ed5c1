"""What is said to be kept of a dataset is of one that there is, and not all of it."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation


def check_columns(facts: Facts) -> Iterator[Violation]:
    """Each narrowed dataset is one that steps read, once, with fewer columns, or rows, than it has."""
    readers: dict[tuple[str, str], set[str]] = {}
    for channel in facts.dataflow.channels:
        readers.setdefault((channel.src, channel.output), set()).add(channel.dst)
    for one in facts.plan.narrowed:
        there = readers.pop((one.src, one.output), set())
        if not there or set(one.dst) != there:
            yield Violation("columns", f"{one.src}/{one.output}", "is not read by these steps, or told twice")
        if one.kept > one.columns or (one.kept == one.columns and not one.where):
            yield Violation("columns", f"{one.src}/{one.output}", f"keeps {one.kept} of {one.columns} columns: all")
