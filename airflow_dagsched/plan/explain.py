"""A plan as a page a person reads, and as a graph for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.values import Container, Group, Plan, Spill
from airflow_dagsched.plan.words import count


def explain(plan: Plan) -> str:
    """The plan as text: summary, then each group with its reason, times and containers, then the spills."""
    groups = (line for group in plan.groups for line in _group(group))
    return "\n".join([*_summary(plan), *groups, *_spills(plan)]) + "\n"


def as_dot(plan: Plan) -> str:
    """The groups as boxes with their steps; solid edges: who waits for whom; dashed ones: spills."""
    home = {step: group.id for group in plan.groups for step in group.steps}
    lines = [f"digraph {_quoted(plan.dataflow)} {{", "  node [shape=box];"]
    lines += [f"  {_quoted(g.id)} [label={_quoted(_label(g))}];" for g in plan.groups]
    lines += [f"  {_quoted(task)} [shape=ellipse];" for task in _tasks(plan)]
    lines += [f"  {_quoted(before)} -> {_quoted(group.id)};" for group in plan.groups for before in group.after]
    lines += [
        f"  {_quoted(home[spill.src])} -> {_quoted(target)} [style=dashed, label={_quoted(_spilled(spill))}];"
        for spill in plan.spills
        for target in dict.fromkeys(home[dst] for dst in spill.dst)
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _summary(plan: Plan) -> Iterator[str]:
    steps = sum(len(group.steps) for group in plan.groups)
    counts = (count(steps, "step"), count(len(plan.groups), "Spark application"), count(len(plan.spills), "spill"))
    yield f"{plan.dataflow}: {', '.join(counts)}"
    yield f"predicted {_seconds(plan.makespan_s)}, no plan can take less than {_seconds(plan.lower_bound_s)}"


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
    yield f"  spread   its steps end within {_seconds(group.finish_spread_s)}"
    yield from _containers(group)
    yield from _pruned(group)


def _pruned(group: Group) -> Iterator[str]:
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
    for worker, there in workers.items():
        instances = sum(len(one.instances) for one in there)
        yield f"  on       {worker}: {count(len(there), 'container')} with {count(instances, 'step instance')}"


def _spills(plan: Plan) -> Iterator[str]:
    if plan.spills:
        yield ""
        yield "spills"
    for spill in plan.spills:
        yield f"  {_spilled(spill)} -> {', '.join(spill.dst)}, {_size(spill.bytes)}: {spill.reason}"


def _spilled(spill: Spill) -> str:
    return f"{spill.src}.{spill.output}" if spill.output else spill.src


def _tasks(plan: Plan) -> list[str]:
    groups = {group.id for group in plan.groups}
    return list(dict.fromkeys(name for group in plan.groups for name in group.after if name not in groups))


def _label(group: Group) -> str:
    return f"{group.id}\n{', '.join(group.steps)}\n{_seconds(group.start_s)} to {_seconds(group.end_s)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


def _size(size_bytes: int) -> str:
    return "size unknown" if not size_bytes else f"{size_bytes / 1024 / 1024:.1f} MiB"
