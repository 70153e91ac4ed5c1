"""A plan as a page a person reads."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.values import Container, Group, Limit, Plan, Spill
from airflow_dagsched.plan.words import count

_LIMITS: dict[Limit, str] = {
    "critical path": "its critical path: more cores would not end it sooner",
    "longest step": "its longest step, beside which all others hold their cores",
    "cores": "cores: its steps could use more than the cluster has",
    "memory": "memory: there are cores for more instances at once, but no memory",
    "slots": "slots, or the order of its steps",
}


def explain(plan: Plan) -> str:
    """The plan as text: summary, what it was chosen from, each group with its reason and limit, spills, movements."""
    groups = (line for group in plan.groups for line in _group(group))
    return "\n".join([*_summary(plan), *_compared(plan), *groups, *_spills(plan), *_movements(plan)]) + "\n"


def _summary(plan: Plan) -> Iterator[str]:
    steps = sum(len(group.steps) for group in plan.groups)
    counts = (count(steps, "step"), count(len(plan.groups), "Spark application"), count(len(plan.spills), "spill"))
    yield f"{plan.dataflow}: {', '.join(counts)}"
    bound = f"no plan can take less than {_seconds(plan.lower_bound_s)} (gap {plan.gap:.1%})"
    yield f"predicted {_seconds(plan.makespan_s)}, {bound}"


def _compared(plan: Plan) -> Iterator[str]:
    if plan.compared:
        yield ""
        yield "compared"
    for at, kind in enumerate(plan.compared):
        mark = ", chosen" if at == 0 else ", runner-up" if at == 1 else ""
        counts = f"{count(kind.groups, 'application')}, {kind.core_seconds:.0f} core-seconds"
        spilled = f", {_mebibytes(kind.spilled_bytes)} spilled" if kind.spilled_bytes else ""
        yield f"  {_seconds(kind.makespan_s):>9}  {kind.what}: {counts}{spilled}{mark}"


def _group(group: Group) -> Iterator[str]:
    time = group.time
    yield ""
    yield f"{group.id}  {_seconds(group.start_s)} to {_seconds(group.end_s)}"
    yield f"  why      {group.reason}"
    yield f"  steps    {', '.join(group.steps)}"
    if group.after:
        yield f"  after    {', '.join(group.after)}"
    parts = (("start", time.start), ("read", time.read), ("compute", time.compute), ("write", time.write))
    yield f"  time     {', '.join(f'{name} {_seconds(value)}' for name, value in parts)}"
    yield f"  limit    {_LIMITS[group.limit]}"
    yield f"  spread   its steps end within {_seconds(group.finish_spread_s)}"
    yield from _containers(group)
    yield from pruning_lines(group)


def pruning_lines(group: Group) -> Iterator[str]:
    """What is left out, in one line where many are for one reason: partitions are."""
    for word, entries in (("pruned  ", group.pruned), ("kept    ", group.unpruned)):
        alike: dict[tuple[str, str], list[str]] = {}
        for one in entries:
            alike.setdefault((one.what, one.reason), []).append(one.id)
        for (what, reason), ids in alike.items():
            named = f"{what} {ids[0]}" if len(ids) == 1 else f"{count(len(ids), what)}, {ids[0]} to {ids[-1]}"
            yield f"  {word} {named}: {reason}"


def _containers(group: Group) -> Iterator[str]:
    if not group.containers:
        return
    box, boxes = group.containers[0], count(len(group.containers), "container")
    held = "all resident" if group.residency == "all" else f"{count(group.slots, 'step')} side by side"
    yield f"  size     {boxes} of {count(box.cores, 'core')}, {box.memory_mb} MiB, {held}"
    workers: dict[str, list[Container]] = {}
    for one in group.containers:
        workers.setdefault(one.worker, []).append(one)
    if group.hosts:
        yield f"  hosts    {group.hosts}"
    if group.placement:
        yield f"  placed   {group.placement}"
    for worker, there in workers.items():
        yield f"  on       {worker}: {count(len(there), 'container')} with {_held(there)}"


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
        yield f"  {_spilled(spill)} -> {', '.join(spill.dst)}, {_size(spill.bytes)}: {spill.reason}"


def _movements(plan: Plan) -> Iterator[str]:
    if plan.movements:
        yield ""
        yield "movements" + (", plan again after the pause of follow_up_s" if plan.follow_up else "")
    for moving in plan.movements:
        yield f"  {moving.instance}  {moving.from_worker} -> {moving.to_worker}: {moving.reason}"


def _spilled(spill: Spill) -> str:
    return f"{spill.src}.{spill.output}" if spill.output else spill.src


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


def _size(size: int) -> str:
    return _mebibytes(size) if size else "size unknown"


def _mebibytes(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MiB"
