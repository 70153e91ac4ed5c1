"""Predicted times agree with each other and with who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_dagsched.plan.check.bound import check_bound
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.check.running import lasting_s
from airflow_dagsched.plan.check.starts import check_starts
from airflow_dagsched.plan.values import Group

TOLERANCE_S = 1e-3


def check_times(facts: Facts) -> Iterator[Violation]:
    """A group takes the time its parts take, starts after all it waits for; the makespan covers all."""
    latest = _earliest_ends(facts)
    for group in facts.plan.groups:
        yield from _duration(group)
        yield from _start(group, latest)
    yield from check_starts(facts, latest)
    yield from check_bound(facts, latest)
    plan = facts.plan
    end = max(latest.values(), default=0.0)
    begun = any(group.progress != "planned" for group in plan.groups)
    late = plan.makespan_s > end + TOLERANCE_S and not begun  # an ordinary task may be later than it was to be
    if late or plan.makespan_s < end - TOLERANCE_S:
        yield Violation("times", "makespan_s", f"is {plan.makespan_s:g} s, but the last end is {end:g} s")
    if plan.lower_bound_s > plan.makespan_s + TOLERANCE_S:
        yield Violation("times", "lower_bound_s", f"{plan.lower_bound_s:g} s is above makespan {plan.makespan_s:g} s")
    if plan.lower_bound_s and abs(plan.makespan_s / plan.lower_bound_s - 1 - plan.gap) > TOLERANCE_S:
        yield Violation("times", "gap", f"is {plan.gap:g}, not what makespan and lower bound say")


def _duration(group: Group) -> Iterator[Violation]:
    time = group.time
    parts = time.start + time.read + time.compute + time.write
    if abs(group.end_s - group.start_s - parts) > TOLERANCE_S:
        yield Violation("times", group.id, f"lasts {group.end_s - group.start_s:g} s, its parts take {parts:g} s")
    if group.finish_spread_s > time.compute + TOLERANCE_S:
        yield Violation("times", group.id, f"its steps end {group.finish_spread_s:g} s apart in {time.compute:g} s")


def _start(group: Group, ends: dict[str, float]) -> Iterator[Violation]:
    for other in group.after:
        if ends.get(other, 0.0) > group.start_s + TOLERANCE_S:
            yield Violation("times", group.id, f"starts at {group.start_s:g} s, {other!r} ends at {ends[other]:g} s")


def _earliest_ends(facts: Facts) -> dict[str, float]:
    """Ends of the groups as predicted, and the earliest the ordinary tasks behind them can end."""
    ends = {group.id: group.end_s for group in facts.plan.groups}
    above: dict[str, set[str]] = {name: set() for name in facts.tasks}
    for src, dst in facts.dataflow.dependencies:
        if dst in above:
            above[dst].add(facts.unit(src))
    ended = _ended(facts, above)
    nexts: dict[str, list[str]] = {}
    for task, before in above.items():
        for name in before & above.keys():
            nexts.setdefault(name, []).append(task)
    waiting = {task: len(before & above.keys()) for task, before in above.items()}
    ready = [task for task, count in waiting.items() if not count]
    for task in ready:
        ends[task] = max((ends.get(name, 0.0) for name in above[task]), default=0.0)
        ends[task] += 0.0 if task in ended else lasting_s(facts, task)
        for after in nexts.get(task, []):
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    return ends


def _ended(facts: Facts, above: Mapping[str, set[str]]) -> set[str]:
    """Ordinary tasks that are over, as the state says, or as groups behind them show that have begun: they took less.

    How long they took is not known, so they count as if they had taken no time.
    """
    before = {group.id: group.after for group in facts.plan.groups}
    ended = [name for name in facts.state.finished if name in facts.tasks]
    found = [group.id for group in facts.plan.groups if group.progress != "planned"]
    seen = set(found)
    for name in found:
        fresh = {*before.get(name, ()), *above.get(name, ())} - seen
        seen |= fresh
        found += fresh
    return {*ended, *(seen & facts.tasks.keys())}
