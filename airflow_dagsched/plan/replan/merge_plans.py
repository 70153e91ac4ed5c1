"""A whole plan from the groups that have begun and a plan of what is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.model.codec import digest_dataflow
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import rank_step
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.plan_types import Container, Group, Plan
from airflow_dagsched.plan.replan.progress import Progress
from airflow_dagsched.plan.report.group_sentences import say_cut
from airflow_dagsched.plan.report.sentences import say_bound
from airflow_dagsched.plan.spill import Spill

ONLY = "launch"
"""Id of a group that is the only one."""


class Rest(Struct, frozen=True):
    """A plan of what is left, and where on the whole plan's time line it begins."""

    plan: Plan
    start_s: float


def merge_plans(old: Plan, dataflow: Dataflow, progress: Progress, rest: Rest) -> Plan:
    """The plan of all of ``dataflow``; groups that were in ``old`` keep their reasons."""
    begun = (*progress.finished, *progress.running)
    alone = not begun and len(rest.plan.groups) == 1
    later = tuple(
        _shift_group(group, rest.start_s, ONLY if alone else _rename_group(group, dataflow))
        for group in rest.plan.groups
    )
    groups = _add_waits((*begun, *later), dataflow)
    # By steps, not by id: a group may have been called ``launch`` while it was the only one.
    reasons = {frozenset(group.steps): group.reason for group in old.groups}
    # The rest's makespan counts ordinary tasks at its end, which no group shows.
    end = max([progress.now_s, rest.start_s + rest.plan.makespan_s, *(group.end_s for group in groups)])
    # The rest was bounded from its own start, as if all of the cluster were free at that moment.
    bound = min(end, progress.now_s + rest.plan.lower_bound_s)
    return replace(
        rest.plan,
        dataflow=dataflow.name,
        digest=digest_dataflow(dataflow),
        makespan_s=round(end, DIGITS),
        lower_bound_s=round(bound, DIGITS),
        lower_bound_reason=say_bound("run has begun") if begun else rest.plan.lower_bound_reason,
        gap=round(end / bound - 1, DIGITS) if bound else 0.0,
        groups=tuple(replace(group, reason=reasons.get(frozenset(group.steps), group.reason)) for group in groups),
        spills=tuple(_find_spills(groups, dataflow, _collect_spill_reasons(old, rest.plan))),
        narrowed=old.narrowed,
    )


def _rename_group(group: Group, dataflow: Dataflow) -> str:
    """Planned without the others, a group may have been the only one."""
    if group.id != ONLY:
        return group.id
    inside = set(group.steps)
    return f"{ONLY}_{min((step for step in dataflow.steps if step.id in inside), key=rank_step).id}"


def _shift_group(group: Group, start_s: float, name: str) -> Group:
    return replace(
        group,
        id=name,
        start_s=round(group.start_s + start_s, DIGITS),
        end_s=round(group.end_s + start_s, DIGITS),
        containers=tuple(_rename_container(box, name) for box in group.containers),
    )


def _rename_container(box: Container, group: str) -> Container:
    return replace(box, id=f"{group}/{box.id.rpartition('/')[2]}")


def _add_waits(groups: tuple[Group, ...], dataflow: Dataflow) -> tuple[Group, ...]:
    """Each group with the groups, then the ordinary tasks, directly above any of its steps."""
    home = {step: group.id for group in groups for step in group.steps}
    tasks = sort_naturally(task.id for task in dataflow.tasks)
    names = dict.fromkeys(home[step.id] for step in sorted(dataflow.steps, key=rank_step))
    rank = {name: at for at, name in enumerate((*names, *tasks))}
    above: dict[str, set[str]] = {group.id: set() for group in groups}
    edges = ((channel.src, channel.dst) for channel in dataflow.channels)
    for src, dst in (*edges, *dataflow.dependencies):
        if dst in home and home.get(src, src) != home[dst]:
            above[home[dst]].add(home.get(src, src))
    return tuple(replace(group, after=tuple(sorted(above[group.id], key=rank.__getitem__))) for group in groups)


def _find_spills(
    groups: Iterable[Group], dataflow: Dataflow, reasons: Mapping[tuple[str, str], str]
) -> Iterator[Spill]:
    """One for each dataset of which a pipelined channel ends in another group."""
    home = {step: group.id for group in groups for step in group.steps}
    place = {step.id: at for at, step in enumerate(sorted(dataflow.steps, key=rank_step))}
    size: dict[tuple[str, str], int] = {}
    readers: dict[tuple[str, str], set[str]] = {}
    for channel in dataflow.channels:
        dataset = channel.src, channel.output
        size[dataset] = max(size.get(dataset, 0), channel.bytes)
        # Also between groups that have begun: the spill is there, and the checker asks for it.
        if channel.kind == "pipelined" and home[channel.src] != home[channel.dst]:
            readers.setdefault(dataset, set()).add(channel.dst)
    for src, output in sorted(readers, key=lambda dataset: (place[dataset[0]], dataset[1])):
        dst = tuple(sorted(readers[src, output], key=place.__getitem__))
        reason = reasons.get((src, output), say_cut("begun"))
        yield Spill(src=src, output=output, dst=dst, bytes=size[src, output], reason=reason)


def _collect_spill_reasons(old: Plan, rest: Plan) -> dict[tuple[str, str], str]:
    """Of spills: as the plan so far tells them, where it has them."""
    # The last wins: the old plan's.
    return {(spill.src, spill.output): spill.reason for spill in (*rest.spills, *old.spills)}
