"""A group is called after its first step, in the author's order of definition: ``launch_<step>``.

The only one there is is called ``launch``; one of a run that is planned by itself, as in the run. Steps of one place
in the author's file are in natural order: ``s2`` comes before ``s10``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation

ONLY = "launch"


def check_names(facts: Facts) -> Iterator[Violation]:
    """Ids of groups follow from their steps: launch tasks keep theirs whatever else changes in the DAG."""
    for group, steps in facts.members:
        if steps:
            names = [f"{ONLY}_{_find_first(steps).id}"]
            if len(facts.members) == 1:
                names.insert(0, ONLY)
            if group.id not in names:
                yield Violation("ids", group.id, f"is to be called {names[0]!r}, after its first step")


def _find_first(steps: list[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]
    # Keys with natural order are costly: only for steps of the same place in the author's file.
    least = min([step.order for step in steps])
    return min([step for step in steps if step.order == least], key=lambda step: _make_natural_key(step.id))


def _make_natural_key(name: str) -> tuple[list[str | tuple[int, str]], str]:
    """Numbers by their value, however long; then the name as it is."""
    parts: list[str | tuple[int, str]] = []
    for at, part in enumerate(re.split("([0-9]+)", name)):
        value = part.lstrip("0")
        # Compared as (length, digits), not as int: Python refuses to parse more than 4,300 digits.
        parts.append((len(value), value) if at % 2 else part)
    return parts, name
