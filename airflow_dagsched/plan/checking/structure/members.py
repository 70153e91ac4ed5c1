"""Every step is in exactly one group, and may be in it; ids are unique; reasons are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import attrgetter

from airflow_dagsched.model.codec import digest_dataflow
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.checking.facts.loops import find_loops
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.plan_types import Group

_isolate = attrgetter("isolate")


def check_members(facts: Facts) -> Iterator[Violation]:
    """Identity of the plan, partition of the steps, settings, isolation, ids and reasons."""
    yield from _check_identity(facts)
    yield from _check_partition(facts)
    yield from _check_ids(facts)
    for group, steps in facts.members:
        if len(steps) > 1:
            yield from _check_application(group, steps)
    yield from _check_isolation(facts)
    yield from _check_reasons(facts)


def _check_identity(facts: Facts) -> Iterator[Violation]:
    plan, name = facts.plan, facts.dataflow.name
    if plan.dataflow != name:
        yield Violation("identity", plan.dataflow, f"the dataflow is called {name!r}")
    expected = digest_dataflow(facts.dataflow)
    if plan.digest != expected:
        yield Violation("digest", plan.dataflow, f"plan is of {plan.digest[:12]!r}, dataflow is {expected[:12]!r}")


def _check_partition(facts: Facts) -> Iterator[Violation]:
    occurrences = Counter(step for group in facts.plan.groups for step in group.steps)
    for step in facts.steps:
        if occurrences[step] != 1:
            yield Violation("partition", step, f"is in {occurrences[step]} groups, not in one")
    for name in occurrences:
        if name not in facts.steps:
            yield Violation("partition", name, f"is in group {facts.group_of[name]!r} but no step of the dataflow")
    for group in facts.plan.groups:
        if not group.steps:
            yield Violation("partition", group.id, "has no steps")


def _check_ids(facts: Facts) -> Iterator[Violation]:
    groups = Counter(group.id for group in facts.plan.groups)
    containers = Counter(container.id for group in facts.plan.groups for container in group.containers)
    for what, counts in (("groups", groups), ("containers", containers)):
        for name, count in counts.items():
            if count > 1:
                yield Violation("ids", name, f"{count} {what} have this id")
    for name in groups:
        if name in facts.steps or name in facts.tasks:
            yield Violation("ids", name, "is a group's and a step's or task's id")


def _check_application(group: Group, steps: list[Step]) -> Iterator[Violation]:
    for step in steps[1:]:
        if step.application != steps[0].application:
            yield Violation("application", step.id, f"settings differ from {steps[0].id!r} in group {group.id!r}")


def _check_isolation(facts: Facts) -> Iterator[Violation]:
    """An isolated step shares its group with nothing but the steps it repeats with."""
    shared = [(group, steps) for group, steps in facts.members if len(steps) > 1 and any(map(_isolate, steps))]
    loop = find_loops(facts.dataflow) if shared else {}
    for group, steps in shared:
        isolated = next(step.id for step in steps if step.isolate)
        for other in steps:
            if other.id != isolated and loop.get(other.id, other.id) != loop.get(isolated, isolated):
                yield Violation("isolate", isolated, f"shares group {group.id!r} with {other.id!r}")


def _check_reasons(facts: Facts) -> Iterator[Violation]:
    for group in facts.plan.groups:
        if not group.reason:
            yield Violation("reason", group.id, "says nothing")
        for pruned in group.pruned:
            if not pruned.reason:
                yield Violation("reason", pruned.id, f"pruned in {group.id!r} without a reason")
    for spill in facts.plan.spills:
        if not spill.reason:
            yield Violation("reason", f"{spill.src}/{spill.output}", "spill says nothing")
