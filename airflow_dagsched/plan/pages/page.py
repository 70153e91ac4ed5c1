"""A plan as a page a person reads.

The whole first, then what it was chosen from, when what runs, each group, and what is spilled::

    sales: 5 steps in 2 Spark applications, 1 spill
    predicted 71.0 s, 4.4% more than the 68.0 s that no plan can beat: the longest path is load > clean > report
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from airflow_dagsched.plan.pages.bars import bars
from airflow_dagsched.plan.values import Compared, Container, Group, Limit, Plan, Spill, Times
from airflow_dagsched.plan.words import count, duration, size, some

WIDTH = 110
"""Characters of a line that is broken where it can be."""
MARGIN = " " * 11
WORKERS = 8
"""Of a group, that are told one by one."""

_LIMITS: dict[Limit, str] = {
    "critical path": "its critical path: more cores would not end it sooner",
    "longest step": "its longest step, beside which all others hold their cores",
    "cores": "cores: its steps could use more than the cluster has",
    "memory": "memory: there are cores for more instances at once, but no memory",
    "slots": "slots, or the order of its steps",
}


def explain(plan: Plan) -> str:
    """The plan as text, each line that may become long broken at about ``WIDTH`` characters."""
    head = (_summary(plan), _compared(plan), _asked(plan), _times(plan))
    parts = (*head, _groups(plan), _spills(plan), _movements(plan))
    return "\n".join(line for part in parts for line in part) + "\n"


def _summary(plan: Plan) -> Iterator[str]:
    steps = sum(len(group.steps) for group in plan.groups)
    spills = f", {count(len(plan.spills), 'spill')}" if plan.spills else ""
    yield f"{plan.dataflow}: {count(steps, 'step')} in {count(len(plan.groups), 'Spark application')}{spills}"
    why = f": {plan.lower_bound_reason}" if plan.lower_bound_reason else ""
    yield from textwrap.wrap(f"predicted {duration(plan.makespan_s)}, {_over(plan)}{why}", WIDTH)


def _over(plan: Plan) -> str:
    """The gap; in seconds where the makespan and its bound are told alike."""
    if not plan.gap:
        return "and no plan can take less"
    if duration(plan.makespan_s) == duration(plan.lower_bound_s):
        return f"{plan.makespan_s - plan.lower_bound_s:.2g} s more than what no plan can beat"
    return f"{plan.gap:.1%} more than the {duration(plan.lower_bound_s)} that no plan can beat"


def _compared(plan: Plan) -> Iterator[str]:
    kinds = plan.compared
    if not kinds:
        return
    yield ""
    if kinds[0].makespan_s > plan.makespan_s:
        yield "with the repeats that failures cost:"
    names = [_named(kind, at) for at, kind in enumerate(kinds)]
    width = max(map(len, names))
    yield f"compared{'':{width + 6}}applications  core-seconds       spilled"
    for kind, name in zip(kinds, names, strict=True):
        spilled = size(kind.spilled_bytes) if kind.spilled_bytes else ""
        counts = f"{kind.groups:>12}{kind.core_seconds:>14,.0f}{spilled:>14}"
        yield f"{duration(kind.makespan_s):>12}  {name:{width}}{counts}".rstrip()


def _named(kind: Compared, at: int) -> str:
    return f"{kind.what}{' (chosen)' if at == 0 else ' (runner-up)' if at == 1 else ''}"


def _asked(plan: Plan) -> Iterator[str]:
    if plan.asked:
        yield ""
        yield "asked for"
    for sentence in plan.asked:
        yield from textwrap.wrap(sentence, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _times(plan: Plan) -> Iterator[str]:
    if len(plan.groups) > 1:
        yield ""
        yield from bars(plan.groups, plan.makespan_s)


def _groups(plan: Plan) -> Iterator[str]:
    return (line for group in plan.groups for line in _group(group))


def _group(group: Group) -> Iterator[str]:
    yield ""
    progress = "" if group.progress == "planned" else f", {group.progress}"
    yield f"{group.id}  {duration(group.start_s)} to {duration(group.end_s)}{progress}"
    yield from _line("why", group.reason)
    yield from _line("steps", ", ".join(group.steps))
    if group.after:
        yield from _line("after", some(group.after, 20))
    yield from _line("time", _parts(group.time))
    yield from _line("limit", _LIMITS[group.limit])
    if len(group.steps) > 1:
        yield from _line("spread", f"its steps end within {duration(group.finish_spread_s)}")
    yield from _containers(group)
    yield from pruning_lines(group)


def _line(word: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {word:9}", subsequent_indent=MARGIN, break_long_words=False)


def _parts(time: Times) -> str:
    """Start and compute, and the others where there are any."""
    parts = (("start", time.start), ("read", time.read), ("compute", time.compute), ("write", time.write))
    return ", ".join(f"{name} {duration(value)}" for name, value in parts if value or name in ("start", "compute"))


def pruning_lines(group: Group) -> Iterator[str]:
    """What is left out, in one line where many are for one reason: partitions are."""
    for word, entries in (("pruned", group.pruned), ("kept", group.unpruned)):
        alike: dict[tuple[str, str], list[str]] = {}
        for one in entries:
            alike.setdefault((one.what, one.reason), []).append(one.id)
        for (what, reason), ids in alike.items():
            named = f"{what} {ids[0]}" if len(ids) == 1 else f"{count(len(ids), what)}, {ids[0]} to {ids[-1]}"
            yield from _line(word, f"{named}: {reason}")


def _containers(group: Group) -> Iterator[str]:
    if not group.containers:
        return
    box, boxes = group.containers[0], count(len(group.containers), "container")
    held = "all resident" if group.residency == "all" else f"{count(group.slots, 'step')} side by side"
    yield from _line("size", f"{boxes} of {count(box.cores, 'core')}, {box.memory_mb} MiB, {held}")
    if group.hosts:
        yield from _line("hosts", group.hosts)
    workers: dict[str, list[Container]] = {}
    for one in group.containers:
        workers.setdefault(one.worker, []).append(one)
    if group.placement:
        yield from _line("placed", group.placement)
    for worker, there in list(workers.items())[:WORKERS]:
        yield f"  on       {worker}: {count(len(there), 'container')} with {_held(there)}"
    if len(workers) > WORKERS:
        yield f"{MARGIN}and {count(len(workers) - WORKERS, 'more worker')}"


def _held(boxes: list[Container]) -> str:
    """What is in them, copies only if there are any."""
    kinds = (("standby", [box.standbys for box in boxes]), ("warm-up", [box.warmups for box in boxes]))
    copies = [count(total, kind) for kind, held in kinds if (total := sum(map(len, held)))]
    return ", ".join([count(sum(len(box.instances) for box in boxes), "step instance"), *copies])


def _spills(plan: Plan) -> Iterator[str]:
    if plan.spills:
        yield ""
        yield "spills"
    for spill in plan.spills:
        amount = size(spill.bytes) if spill.bytes else "size unknown"
        text = f"{_dataset(spill)} -> {some(spill.dst)}, {amount}: {spill.reason}"
        yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def _movements(plan: Plan) -> Iterator[str]:
    if plan.movements:
        yield ""
        yield "movements" + (", plan again after the pause of follow_up_s" if plan.follow_up else "")
    for moving in plan.movements:
        yield f"  {moving.instance}  {moving.from_worker} -> {moving.to_worker}: {moving.reason}"


def _dataset(spill: Spill) -> str:
    return f"{spill.src}.{spill.output}" if spill.output else spill.src
