"""A plan as a page a person reads.

The whole first, then what it was chosen from, when what runs, each group, and what is spilled::

    sales: 5 steps in 2 Spark applications, 1 spill
    predicted 71.0 s, 4.4% more than the 68.0 s that no plan can beat with these runtimes: the longest path is ...
    all of the work is declared
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.plan_types import Compared, Container, Group, Limit, Plan, Times
from airflow_dagsched.plan.report.alike import Alike, collapse_groups, collapse_spills
from airflow_dagsched.plan.report.bars import draw_bars
from airflow_dagsched.plan.report.certainty import say_bound_of, say_known
from airflow_dagsched.plan.report.words import (
    format_count,
    format_duration,
    format_names,
    format_size,
    join_names,
    name_dataset,
    say_narrowed,
)

WIDTH = 110
"""Characters of a line that is broken where it can be."""
MARGIN = " " * 11
WORKERS = 8
"""Of a group, that are told one by one."""
STEPS = 60
"""Of a group, that are named."""

_ROOMS = {"whole": "all there is", "free": "what is free now"}
_CLUSTERS = {"declared": "declared cluster", "live": "cluster as it is now", "assumed": "cluster that is ample"}
_GROUPS = {
    "planner": "groups of the planner's choice",
    "dag": "groups of the DAG file",
    "plan file": "groups of the plan file",
    "run": "steps that are submitted by themselves",
}
_LIMITS: dict[Limit, str] = {
    "critical path": "its critical path: more cores would not end it sooner",
    "longest step": "its longest step, beside which all others hold their cores",
    "cores": "cores: its steps could use more than the cluster has",
    "memory": "memory: there are cores for more instances at once, but no memory",
    "slots": "slots, or the order of its steps",
}
_CORES_LEFT = "cores: its steps could use more than the workers have that are not left out"


def explain_plan(plan: Plan) -> str:
    """The plan as text, each line that may become long broken at about ``WIDTH`` characters."""
    alike = collapse_groups(plan.groups)
    head = (_write_summary(plan), write_facts(plan), _write_compared(plan), _write_constraints(plan))
    tail = (_write_spills(plan), _write_columns(plan), _write_movements(plan))
    parts = (*head, _draw_times(plan, alike), _write_groups(alike), *tail)
    return "\n".join(line for part in parts for line in part) + "\n"


def _write_summary(plan: Plan) -> Iterator[str]:
    steps = sum(len(group.steps) for group in plan.groups)
    spills = f", {format_count(len(plan.spills), 'spill')}" if plan.spills else ""
    applications = format_count(len(plan.groups), "Spark application")
    yield f"{plan.dataflow}: {format_count(steps, 'step')} in {applications}{spills}"
    bound = say_bound_of(plan)
    why = f": {plan.lower_bound_reason}" if bound and plan.lower_bound_reason else ""
    predicted = f"predicted {format_duration(plan.makespan_s)}"
    yield from textwrap.wrap(", ".join(filter(None, [predicted, bound])) + why, WIDTH)
    if plan.work is not None:
        yield from textwrap.wrap(say_known(plan.work), WIDTH)


def write_facts(plan: Plan) -> Iterator[str]:
    """What the plan was made with, where it says so."""
    facts = plan.facts
    if facts is None:
        return
    run = f"the run of {facts.interval}" if facts.interval else "any run: nothing is left out by its interval"
    room = f"planned for {_ROOMS[facts.room]} of the {_CLUSTERS[facts.cluster]}"
    yield from textwrap.wrap("; ".join((room, run, _GROUPS[facts.groups])), WIDTH)
    if facts.author:
        yield from textwrap.wrap(f"its author sets {', '.join(facts.author)}", WIDTH)
    if facts.starts == "warm":
        yield "its groups are taken to go on in applications that are warm"
    if facts.beside:
        told = f"its launches begin beside those of {join_names(facts.beside)}, on what these leave"
        yield from textwrap.wrap(told, WIDTH)
    if facts.behind:
        yield from textwrap.wrap(f"it begins when {join_names(facts.behind)} has written what it reads", WIDTH)
    if facts.waiting:
        names = join_names(facts.waiting)
        yield from textwrap.wrap(f"too little is free for {names}: planned on all there is, to wait for it", WIDTH)


def _write_compared(plan: Plan) -> Iterator[str]:
    kinds = plan.compared
    if not kinds:
        return
    yield ""
    # Groupings are compared with the failures to expect, the plan's times are without.
    if kinds[0].makespan_s > plan.makespan_s:
        yield "with the repeats that failures cost:"
    names = [_name_kind(kind, at) for at, kind in enumerate(kinds)]
    width = max(map(len, names))
    yield f"compared{'':{width + 6}}applications  core-seconds       spilled"
    for kind, name in zip(kinds, names, strict=True):
        spilled = format_size(kind.spilled_bytes) if kind.spilled_bytes else ""
        counts = f"{kind.groups:>12}{kind.core_seconds:>14,.0f}{spilled:>14}"
        yield f"{format_duration(kind.makespan_s):>12}  {name:{width}}{counts}".rstrip()


def _name_kind(kind: Compared, at: int) -> str:
    return f"{kind.what}{' (chosen)' if at == 0 else ' (runner-up)' if at == 1 else ''}"


def _write_constraints(plan: Plan) -> Iterator[str]:
    if plan.asked:
        yield ""
        yield "asked for"
    for sentence in plan.asked:
        yield from textwrap.wrap(sentence, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _draw_times(plan: Plan, alike: Sequence[Alike]) -> Iterator[str]:
    if len(plan.groups) > 1:
        yield ""
        yield from draw_bars(alike, plan.makespan_s)


def _write_groups(alike: Sequence[Alike]) -> Iterator[str]:
    for one in alike:
        yield ""
        yield from _count_alike(one)
        yield from _write_group(one.first)


def _count_alike(alike: Alike) -> Iterator[str]:
    """How many there are, and when they run, if it is not one alone; that is then shown."""
    if len(alike.groups) == 1:
        return
    names = join_names([group.id for group in alike.groups], 4)
    yield from textwrap.wrap(f"{format_count(len(alike.groups), 'application')} like this: {names}", WIDTH)
    shortest, longest = (format_duration(seconds) for seconds in alike.find_lengths())
    lengths = f"{shortest} each" if shortest == longest else f"{shortest} to {longest} each"
    yield f"{format_duration(alike.start_s)} to {format_duration(alike.end_s)}, {lengths}; the first:"


def _write_group(group: Group) -> Iterator[str]:
    progress = "" if group.progress == "planned" else f", {group.progress}"
    yield f"{group.id}  {format_duration(group.start_s)} to {format_duration(group.end_s)}{progress}"
    yield from _wrap_line("why", group.reason)
    yield from _wrap_line("steps", join_names(group.steps, STEPS))
    if group.after:
        yield from _wrap_line("after", join_names(group.after, 20))
    yield from _wrap_line("time", _describe_parts(group.time))
    yield from _wrap_line("limit", _say_limit(group))
    if len(group.steps) > 1:
        yield from _wrap_line("spread", f"its steps end within {format_duration(group.finish_spread_s)}")
    yield from _write_containers(group)
    if group.settings:
        yield from _wrap_line("submits", ", ".join(f"{name}={value}" for name, value in sorted(group.settings.items())))
    yield from write_pruning(group)


def _say_limit(group: Group) -> str:
    """Of a group that leaves workers out, not what the cluster has is its limit."""
    barred = any(one.what == "worker" for one in group.pruned)
    return _CORES_LEFT if barred and group.limit == "cores" else _LIMITS[group.limit]


def _wrap_line(word: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {word:9}", subsequent_indent=MARGIN, break_long_words=False)


def _describe_parts(time: Times) -> str:
    """Start and compute, and the others where there are any."""
    parts = (("start", time.start), ("read", time.read), ("compute", time.compute), ("write", time.write))
    return ", ".join(
        f"{name} {format_duration(value)}" for name, value in parts if value or name in ("start", "compute")
    )


def write_pruning(group: Group) -> Iterator[str]:
    """What is left out, in one line where many are for one reason: partitions are."""
    for word, entries in (("pruned", group.pruned), ("kept", group.unpruned)):
        alike: dict[tuple[str, str], list[str]] = {}
        for entry in entries:
            # A year of days has one reason: a line for each would bury the others.
            alike.setdefault((entry.what, entry.reason), []).append(entry.id)
        for (what, reason), ids in alike.items():
            yield from _wrap_line(word, f"{format_names(what, ids)}: {reason}")


def _write_containers(group: Group) -> Iterator[str]:
    if not group.containers:
        return
    # What holds copies of state alone is no executor: it is listed below, with them.
    boxes = group.executors or group.containers
    container, containers = boxes[0], format_count(len(boxes), "container")
    held = "all resident" if group.residency == "all" else f"{format_count(group.slots, 'step')} side by side"
    yield from _wrap_line(
        "size", f"{containers} of {format_count(container.cores, 'core')}, {container.memory_mb} MiB, {held}"
    )
    if group.hosts:
        yield from _wrap_line("hosts", group.hosts)
    workers: dict[str, list[Container]] = {}
    for entry in group.containers:
        workers.setdefault(entry.worker, []).append(entry)
    if group.placement:
        yield from _wrap_line("placed", group.placement)
    for worker, there in list(workers.items())[:WORKERS]:
        yield f"  on       {worker}: {format_count(len(there), 'container')} with {_count_held(there)}"
    if len(workers) > WORKERS:
        yield f"{MARGIN}and {format_count(len(workers) - WORKERS, 'more worker')}"


def _count_held(containers: list[Container]) -> str:
    """What is in them, copies only if there are any."""
    kinds = (
        ("standby", [container.standbys for container in containers]),
        ("warm-up", [container.warmups for container in containers]),
    )
    copies = [format_count(total, kind) for kind, held in kinds if (total := sum(map(len, held)))]
    return ", ".join(
        [format_count(sum(len(container.instances) for container in containers), "step instance"), *copies]
    )


def _write_spills(plan: Plan) -> Iterator[str]:
    if plan.spills:
        yield ""
        yield "spills"
    for spills in collapse_spills(plan):
        spill = spills[0]
        amount = format_size(spill.bytes) if spill.bytes else "size unknown"
        names = format_names("dataset", [name_dataset(one) for one in spills]) if len(spills) > 1 else ""
        like = f"{names} like this: " if names else ""
        text = f"{like}{name_dataset(spill)} -> {join_names(spill.dst)}, {amount}: {spill.reason}"
        yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def _write_columns(plan: Plan) -> Iterator[str]:
    if plan.narrowed:
        yield ""
        yield "columns that are read, and no others, as in the last run of this code"
    for one in plan.narrowed:
        text = f"{name_dataset(one)} -> {join_names(one.dst)}, {say_narrowed(one)}"
        yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def _write_movements(plan: Plan) -> Iterator[str]:
    if plan.movements:
        yield ""
        yield "movements" + (", plan again after the pause of follow_up_s" if plan.follow_up else "")
    for moving in plan.movements:
        yield f"  {moving.instance}  {moving.from_worker} -> {moving.to_worker}: {moving.reason}"
