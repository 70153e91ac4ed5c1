"""Re-planning a run part-way: finished groups stay, running ones keep their places, the rest is planned anew.

::

    the plan so far     [a b]────[c]────[d]────[e]      with what was measured: 50 s left
    the rest anew       [a b]────[c]────[d e]           40 s left: accepted, 20% sooner
                          ^over    ^running

Incremental, and full each time: the result is a whole plan of the whole dataflow. A change is accepted only if
what is left then ends sooner by a margin, so that two plans that are about as good do not take turns; moving a
running group costs what it has done, and its start, since it begins again. A change that must be (a worker is
gone, a group no longer fits) needs no gain. Equal facts give the equal plan: replanning the result changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import digest
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.model.validate import valid_graph
from airflow_dagsched.plan.again.progress import Progress, progress_of
from airflow_dagsched.plan.again.rest import Leftover, beside, leftover
from airflow_dagsched.plan.again.whole import DIGITS, Rest, whole
from airflow_dagsched.plan.asked import asked_for
from airflow_dagsched.plan.informed import informed
from airflow_dagsched.plan.planner import plan as plan_of
from airflow_dagsched.plan.prune.asked import NOTHING_ASKED, Asked
from airflow_dagsched.plan.rules import ruled
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.values import Group, Plan

GROUP = "dagsched.group"
"""Key in ``application`` that keeps the steps of different groups apart while the groups so far are priced."""
KEPT = "as large, and where, as it can be now"
Refused = DoesNotFit | InvalidInput
"""Why what is left cannot be grouped so: there is no room, or what its author asks of groups is against it."""
What = Literal["new", "dissolved", "begins again", "moved", "resized"]


class Change(Struct, frozen=True):
    """What is different for one group, and why."""

    group: str
    what: What
    reason: str

    def __str__(self) -> str:
        return f"{self.group}: {self.what}: {self.reason}"


class Replanned(Struct, frozen=True):
    """The plan from now on."""

    plan: Plan
    changes: tuple[Change, ...]
    """By group; empty: everything left runs as it was planned, at the times that are known now."""
    left_s: float
    """Until all has ended, as predicted."""
    saved_s: float
    """Against the groups and places so far, where these are still possible; else zero."""


class _Facts(Struct, frozen=True):
    """What every candidate is made from."""

    old: Plan
    dataflow: Dataflow
    cluster: Cluster
    settings: Settings
    asked: Asked


def replan(
    plan: Plan,
    dataflow: Dataflow,
    cluster: Cluster,
    state: State,
    settings: Settings = DEFAULTS,
    *,
    asked: Asked = NOTHING_ASKED,
) -> Replanned:
    """``plan`` of ``dataflow``, part-way through a run, planned anew for what is known now.

    :param cluster: what this run may have now: what its running groups hold counts as free.
    :param state: finished and running groups, finished ordinary tasks, what was measured.
    :param asked: how to prune what is left.

    Raises ``InvalidInput`` where the plan is not of this dataflow, the state not of this plan, or one of the others
    breaks a rule; ``DoesNotFit`` where what is left is larger than the cluster even after cutting it anew.
    """
    if plan.digest != digest(dataflow):
        raise InvalidInput("plan", "digest", f"is not that of dataflow {dataflow.name!r}: plan it again")
    facts = _Facts(plan, *informed(dataflow, cluster, state, settings=settings), settings, asked)
    ruled(valid_graph(facts.dataflow), settings)  # of the whole: what is left may not have all the steps they name
    progress = progress_of(plan, facts.dataflow, facts.cluster, state)
    return _chosen(facts, progress)


def _chosen(facts: _Facts, progress: Progress) -> Replanned:
    """The groups so far, unless others are better by the margin, or they are not possible any more."""
    anew = _tried(facts, progress, _as_it_is)
    kept = anew if _same_groups(facts.old, anew) else _as_grouped(facts, progress)
    best = _best(facts, progress, anew)
    if isinstance(kept, Refused):
        if isinstance(best, Refused):
            raise best
        return _told(facts, progress, best, 0.0, str(kept))
    kept = _on(facts.old, kept, anew)
    if isinstance(best, Refused):
        return _told(facts, progress, kept, 0.0, KEPT)
    left, saved = kept.makespan_s - progress.now_s, kept.makespan_s - best.makespan_s
    if saved <= max(0.0, facts.settings.replan_margin * left):
        return _told(facts, progress, kept, 0.0, KEPT)
    why = f"what is left ends {saved:.1f} s sooner, in {left - saved:.1f} s instead of {left:.1f} s"
    return _told(facts, progress, best, saved, why)


def _as_grouped(facts: _Facts, progress: Progress) -> Plan | Refused:
    """The groups so far; where they do not fit any more, or the settings forbid them by now, cut."""
    over = {step for group in (*progress.finished, *progress.running) for step in group.steps}
    left = tuple(group.steps for group in facts.old.groups if over.isdisjoint(group.steps))
    told = replace(facts.settings, together=(*facts.settings.together, *left))
    made = _tried(replace(facts, settings=told), progress, _borders(facts.old))
    return _tried(facts, progress, _borders(facts.old)) if isinstance(made, Refused) else made


def _told(facts: _Facts, progress: Progress, made: Plan, saved_s: float, why: str) -> Replanned:
    changes = tuple(_changes(facts.old, made, progress, why))
    made = replace(made, asked=asked_for(made, facts.dataflow, facts.cluster, facts.settings))
    return Replanned(made, changes, made.makespan_s - progress.now_s, saved_s)


def _on(old: Plan, kept: Plan, anew: Plan | Refused) -> Plan:
    """The groups so far; once some have begun, with what the old plan says of how they were chosen.

    Else with the bound of ``anew``, for ``kept`` was planned as if its groups could not be others.
    """
    if any(group.progress != "planned" for group in kept.groups):
        return replace(kept, compared=old.compared, movements=old.movements, follow_up=old.follow_up)
    if not isinstance(anew, Refused):
        bound = min(anew.lower_bound_s, kept.makespan_s)
        gap = round(kept.makespan_s / bound - 1, DIGITS) if bound else 0.0
        kept = replace(kept, lower_bound_s=bound, lower_bound_reason=anew.lower_bound_reason, gap=gap)
    return replace(kept, movements=old.movements, follow_up=old.follow_up)


def _best(facts: _Facts, progress: Progress, anew: Plan | Refused) -> Plan | Refused:
    """All that is left grouped anew; or that and what is running, which then begins again."""
    if not progress.running:
        return anew
    stopped = _tried(facts, progress.stopped(), _as_it_is)
    plans = [made for made in (anew, stopped) if not isinstance(made, Refused)]
    return min(plans, key=lambda made: made.makespan_s) if plans else stopped


def _same_groups(old: Plan, made: Plan | Refused) -> bool:
    before = {frozenset(group.steps) for group in old.groups}
    return not isinstance(made, Refused) and before == {frozenset(group.steps) for group in made.groups}


def _tried(facts: _Facts, progress: Progress, grouped: Callable[[Dataflow], Dataflow]) -> Plan | Refused:
    """What is left beside the running groups, or behind them, whichever ends first; or why neither is possible."""
    found: list[Plan] = []
    refusal: Refused | None = None
    for make in (_beside, _behind) if progress.running else (_behind,):
        try:
            found.append(whole(facts.old, facts.dataflow, progress, make(facts, progress, grouped)))
        except (DoesNotFit, InvalidInput) as refused:
            refusal = refused
    if found:
        return min(found, key=lambda made: made.makespan_s)
    assert refusal is not None
    return refusal


def _beside(facts: _Facts, progress: Progress, grouped: Callable[[Dataflow], Dataflow]) -> Rest:
    """At once, on what the running groups leave free."""
    left = leftover(facts.dataflow, facts.settings, progress, progress.running, progress.now_s)
    return Rest(_planned(facts, left, grouped, beside(facts.cluster, progress.running)), progress.now_s)


def _behind(facts: _Facts, progress: Progress, grouped: Callable[[Dataflow], Dataflow]) -> Rest:
    """After the last running group, on all there is."""
    start = max([progress.now_s, *(group.end_s for group in progress.running)])
    left = leftover(facts.dataflow, facts.settings, progress, (), start)
    return Rest(_planned(facts, left, grouped, facts.cluster), start)


def _planned(facts: _Facts, left: Leftover, grouped: Callable[[Dataflow], Dataflow], cluster: Cluster) -> Plan:
    return plan_of(grouped(left.dataflow), cluster, left.settings, asked=facts.asked, stored=left.stored)


def _as_it_is(dataflow: Dataflow) -> Dataflow:
    return dataflow


def _borders(old: Plan) -> Callable[[Dataflow], Dataflow]:
    """Gives each step a setting that tells the groups of ``old`` apart."""
    home = {step: group.id for group in old.groups for step in group.steps}

    def bordered(dataflow: Dataflow) -> Dataflow:
        steps = (replace(step, application={**step.application, GROUP: home[step.id]}) for step in dataflow.steps)
        return replace(dataflow, steps=tuple(steps))

    return bordered


def _changes(old: Plan, new: Plan, progress: Progress, why: str) -> Iterator[Change]:
    """What the new plan does otherwise with groups that were not finished."""
    before = {group.id: group for group in old.groups}
    runs = {group.id: group for group in progress.running}
    over = {group.id for group in progress.finished}
    for group in new.groups:
        if group.id not in over:
            what = _what(before.get(group.id), group, restarted=group.id in progress.again or _moved(runs, group))
            if what is not None:
                yield Change(group.id, what, progress.again.get(group.id, why))
    there = {group.id for group in new.groups}
    for name in before:
        if name not in there:
            yield Change(name, "dissolved", why)


def _moved(runs: Mapping[str, Group], group: Group) -> bool:
    """Whether the group was running and does not go on as it was."""
    return group.id in runs and group.progress != "running"


def _what(before: Group | None, group: Group, *, restarted: bool) -> What | None:
    if before is None or set(before.steps) != set(group.steps):
        return "new"
    if restarted:
        return "begins again"
    if _shapes(before) != _shapes(group):
        return "resized"
    return "moved" if _places(before) != _places(group) else None


def _shapes(group: Group) -> list[tuple[int, int]]:
    return sorted((box.cores, box.memory_mb) for box in group.containers)


def _places(group: Group) -> list[str]:
    return sorted(box.worker for box in group.containers)
