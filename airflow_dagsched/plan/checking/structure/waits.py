"""Groups wait for all they take from, for nothing else, and never for each other; inside, steps stand in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_dagsched.plan.checking.facts.edges import order_units
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation


def check_waits(facts: Facts) -> Iterator[Violation]:
    """``after`` says what the edges say; groups with the ordinary tasks are acyclic; steps of a group are in order."""
    # Reversed: of units with one name, which is another rule's violation, the first counts.
    number = dict(zip(reversed(facts.units), reversed(range(len(facts.units))), strict=True))
    above = facts.edges.above
    differing: dict[int, set[int]] = {}
    for at, group in enumerate(facts.plan.groups):
        declared = {number.get(name, -1) for name in group.after}
        if declared != above[at] or len(group.after) != len(declared):
            yield from _explain_waits(facts, at)
            # What the launch would wait for: a cycle of declared waits would hang it, whatever the edges say.
            differing[at] = above[at] | declared - {-1}
    yield from _check_cycles(facts, differing)
    yield from _check_inner_order(facts)


def _explain_waits(facts: Facts, at: int) -> Iterator[Violation]:
    group, units = facts.plan.groups[at], set(facts.units)
    above = {facts.units[unit] for unit in facts.edges.above[at]}
    for name in sorted(above.difference(group.after)):
        yield Violation("completable", group.id, f"takes from {name!r} but does not wait for it")
    for name in sorted(set(group.after) - above):
        if name in units:
            yield Violation("after", group.id, f"waits for {name!r}, from which it takes nothing")
        else:
            yield Violation("completable", group.id, f"waits for {name!r}, which is no group or task")
    if len(set(group.after)) < len(group.after):
        yield Violation("after", group.id, "waits for one of those it names several times")


def _check_cycles(facts: Facts, differing: Mapping[int, set[int]]) -> Iterator[Violation]:
    """``differing``: groups that say they wait for others than the edges say, with all of these."""
    order, above = facts.edges.order, facts.edges.above
    if differing:
        order = order_units([differing.get(at, before) for at, before in enumerate(above)])
    if len(order) < len(above):
        waiting = sorted(facts.units[unit] for unit in set(range(len(above))).difference(order))
        yield Violation("acyclic", waiting[0], f"groups and tasks wait for each other: {', '.join(waiting)}")


def _check_inner_order(facts: Facts) -> Iterator[Violation]:
    for src, dst in facts.edges.back:
        # Of a loop some edge must lead back.
        if src != dst and not (facts.steps[src].repeat and facts.steps[dst].repeat):
            yield Violation("order", dst, f"stands before {src!r}, which it waits for")
