"""Groups wait for all they take from, and never for each other; inside, steps stand in order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from airflow_dagsched.plan.check.facts import Facts, Violation


def check_waits(facts: Facts) -> Iterator[Violation]:
    """``after`` is complete and known; groups with the ordinary tasks are acyclic; steps of a group are in order."""
    yield from _after(facts, facts.edges.units)
    yield from _cycles(facts, facts.edges.units)
    yield from _inner_order(facts)


def _after(facts: Facts, edges: set[tuple[str, str]]) -> Iterator[Violation]:
    groups = {group.id: set(group.after) for group in facts.plan.groups}
    for src, dst in sorted(edges):
        if dst in groups and src not in groups[dst]:
            yield Violation("completable", dst, f"takes from {src!r} but does not wait for it")
    for name, after in groups.items():
        for other in sorted(after):
            if other not in groups and other not in facts.tasks:
                yield Violation("completable", name, f"waits for {other!r}, which is no group or task")


def _cycles(facts: Facts, edges: set[tuple[str, str]]) -> Iterator[Violation]:
    """Take away what waits for nothing, again and again: what is left waits for itself."""
    nexts: dict[str, set[str]] = {name: set() for name in (*facts.tasks, *(g.id for g in facts.plan.groups))}
    declared = {(other, group.id) for group in facts.plan.groups for other in group.after}
    for src, dst in edges | declared:
        nexts.setdefault(src, set()).add(dst)
        nexts.setdefault(dst, set())
    waiting = dict.fromkeys(nexts, 0)
    for name in chain.from_iterable(nexts.values()):
        waiting[name] += 1
    done = [name for name, count in waiting.items() if not count]
    for name in done:
        for after in nexts[name]:
            waiting[after] -= 1
            if not waiting[after]:
                done.append(after)
    left = sorted(set(nexts) - set(done))
    if left:
        yield Violation("acyclic", left[0], f"groups and tasks wait for each other: {', '.join(left)}")


def _inner_order(facts: Facts) -> Iterator[Violation]:
    for src, dst in facts.edges.back:
        if src != dst and not (facts.steps[src].repeat and facts.steps[dst].repeat):
            yield Violation("order", dst, f"stands before {src!r}, which it waits for")
