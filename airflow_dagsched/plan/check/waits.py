"""Groups wait for all they take from, and never for each other; inside, steps stand in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from airflow_dagsched.plan.check.facts import Facts, Violation


def check_waits(facts: Facts) -> Iterator[Violation]:
    """``after`` is complete and known; groups with the ordinary tasks are acyclic; steps of a group are in order."""
    declared = {group.id: set(group.after) for group in facts.plan.groups}
    yield from _after(facts, declared)
    yield from _cycles(facts, declared)
    yield from _inner_order(facts)


def _after(facts: Facts, declared: Mapping[str, set[str]]) -> Iterator[Violation]:
    missing = [(src, dst) for src, dst in facts.edges.units if dst in declared and src not in declared[dst]]
    for src, dst in sorted(missing):
        yield Violation("completable", dst, f"takes from {src!r} but does not wait for it")
    for name, after in declared.items():
        for other in sorted([one for one in after if one not in declared and one not in facts.tasks]):
            yield Violation("completable", name, f"waits for {other!r}, which is no group or task")


def _cycles(facts: Facts, declared: Mapping[str, set[str]]) -> Iterator[Violation]:
    """Take away what waits for nothing, again and again: what is left waits for itself."""
    nexts: dict[str, list[str]] = {name: [] for name in (*facts.tasks, *declared)}
    for name, above in declared.items():
        for other in above:
            nexts.setdefault(other, []).append(name)
    for src, dst in facts.edges.units:
        if src not in declared.get(dst, ()):
            nexts.setdefault(src, []).append(dst)
            nexts.setdefault(dst, [])
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
