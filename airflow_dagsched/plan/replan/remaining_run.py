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

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import digest_dataflow
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.model.validate import build_valid_graph
from airflow_dagsched.plan.measurements import apply_measurements, list_measured
from airflow_dagsched.plan.passes.report_constraints import say_constraints
from airflow_dagsched.plan.plan_types import Group, Plan, Replanned
from airflow_dagsched.plan.planner import plan as plan_of
from airflow_dagsched.plan.problem.rules import apply_rules
from airflow_dagsched.plan.problem.run import FixedGroup, Policy, Run
from airflow_dagsched.plan.pruning.pruning_input import NO_PRUNING_INPUT, PruningInput
from airflow_dagsched.plan.reasons.changes import Change, ChangeKind, ChangeReason, EndsSooner, GroupsRefused
from airflow_dagsched.plan.replan.merge_plans import Rest, merge_plans
from airflow_dagsched.plan.replan.progress import Progress, measure_progress
from airflow_dagsched.plan.replan.remainder import Leftover, count_applications, find_leftover, subtract_held
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.work_shares import share_work

GROUP = "dagsched.group"
"""Key in ``application`` that keeps the steps of different groups apart where groups so far have to be cut."""
Refused = DoesNotFit | InvalidInput
"""Why what is left cannot be grouped so: there is no room, or what its author asks of groups is against it."""
Grouped = Literal["anew", "as before", "as before, or cut"]
"""How what is left is grouped."""


class _Facts(Struct, frozen=True):
    """What every candidate is made from."""

    old: Plan
    dataflow: Dataflow
    cluster: Cluster
    settings: Settings
    asked: PruningInput
    policy: Policy | None
    measured: frozenset[str]

    @classmethod
    def of(
        cls,
        plan: Plan,
        dataflow: Dataflow,
        cluster: Cluster,
        state: State,
        settings: Settings,
        *,
        asked: PruningInput = NO_PRUNING_INPUT,
        policy: Policy | None = None,
    ) -> _Facts:
        """With what was measured."""
        known = apply_measurements(dataflow, cluster, state, settings=settings)
        return cls(plan, *known, settings, asked, policy, list_measured(state))


def replan_run(
    plan: Plan,
    dataflow: Dataflow,
    cluster: Cluster,
    state: State,
    settings: Settings = DEFAULTS,
    *,
    asked: PruningInput = NO_PRUNING_INPUT,
    policy: Policy | None = None,
) -> Replanned:
    """``plan`` of ``dataflow``, part-way through a run, planned anew for what is known now.

    :param cluster: what this run may have now: what its running groups hold counts as free.
    :param state: finished and running groups, finished ordinary tasks, what was measured.
    :param asked: how to prune what is left.
    :param policy: places what is left; None: it stays as it is sized.

    Raises ``InvalidInput`` where the plan is not of this dataflow, the state not of this plan, or one of the others
    breaks a rule; ``DoesNotFit`` where what is left is larger than the cluster even after cutting it anew.
    """
    # Measured values are not in the digest: a plan stays one of its dataflow whatever is learnt.
    if plan.digest != digest_dataflow(dataflow):
        raise InvalidInput("plan", "digest", f"is not that of dataflow {dataflow.name!r}: plan it again")
    facts = _Facts.of(plan, dataflow, cluster, state, settings, asked=asked, policy=policy)
    apply_rules(
        build_valid_graph(facts.dataflow), settings
    )  # of the whole: what is left may not have all the steps they name
    progress = measure_progress(plan, facts.dataflow, facts.cluster, state)
    return _choose_plan(facts, progress)


def keep_groups(
    plan: Plan, dataflow: Dataflow, cluster: Cluster, state: State, settings: Settings = DEFAULTS
) -> Replanned | None:
    """As ``replan_run``, but with the groups of ``plan`` in any case: to compare what others would take.

    None where that cannot be: some group has no room, or there is a cycle among them.
    """
    try:
        facts = _Facts.of(plan, dataflow, cluster, state, settings)
        progress = measure_progress(plan, facts.dataflow, facts.cluster, state)
        kept = _try_both(facts, progress, "as before")
    except (DoesNotFit, InvalidInput):
        return None
    return None if isinstance(kept, Refused) else Replanned(kept, (), kept.makespan_s - progress.now_s, 0.0)


def _choose_plan(facts: _Facts, progress: Progress) -> Replanned:
    """The groups so far, unless others are better by the margin, or they are not possible any more."""
    # First, for it often gives the groups so far: then they need not be planned a second time.
    anew = _try_both(facts, progress, "anew")
    kept = anew if _has_same_groups(facts.old, anew) else _keep_groups(facts, progress)
    best = _regroup_remainder(facts, progress, anew)
    if isinstance(kept, Refused):
        if isinstance(best, Refused):
            raise best
        return _report_replanned(facts, progress, best, 0.0, GroupsRefused(kept))
    kept = _continue_plan(facts.old, kept, anew)
    if isinstance(best, Refused):
        return _report_replanned(facts, progress, kept, 0.0, "as can be now")
    left, saved = kept.makespan_s - progress.now_s, kept.makespan_s - best.makespan_s
    # A tie is no gain, even with a margin of 0: two plans must not take turns.
    if saved <= max(0.0, facts.settings.replan_margin * left):
        return _report_replanned(facts, progress, kept, 0.0, "as can be now")
    return _report_replanned(facts, progress, best, saved, EndsSooner(saved, left))


def _keep_groups(facts: _Facts, progress: Progress) -> Plan | Refused:
    """The groups so far; where they do not fit any more, or the settings forbid them by now, cut."""
    made = _try_both(facts, progress, "as before")
    return _try_both(facts, progress, "as before, or cut") if isinstance(made, Refused) else made


def _report_replanned(facts: _Facts, progress: Progress, made: Plan, saved_s: float, why: ChangeReason) -> Replanned:
    changes = tuple(_list_changes(facts.old, made, progress, why))
    made = replace(made, asked=say_constraints(made, facts.dataflow, facts.cluster, facts.settings))
    return Replanned(made, changes, made.makespan_s - progress.now_s, saved_s)


def _continue_plan(old: Plan, kept: Plan, anew: Plan | Refused) -> Plan:
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


def _regroup_remainder(facts: _Facts, progress: Progress, anew: Plan | Refused) -> Plan | Refused:
    """All that is left grouped anew; or that and what is running, which then begins again."""
    # Nothing runs that could be stopped.
    if not progress.running:
        return anew
    stopped = _try_both(facts, progress.restart_running(), "anew")
    plans = [made for made in (anew, stopped) if not isinstance(made, Refused)]
    # At a tie the first, which stops nothing.
    return min(plans, key=lambda made: made.makespan_s) if plans else stopped


def _has_same_groups(old: Plan, made: Plan | Refused) -> bool:
    before = {frozenset(group.steps) for group in old.groups}
    return not isinstance(made, Refused) and before == {frozenset(group.steps) for group in made.groups}


def _try_both(facts: _Facts, progress: Progress, grouped: Grouped) -> Plan | Refused:
    """What is left beside the running groups, or behind them, whichever ends first; or why neither is possible."""
    found: list[Plan] = []
    refusal: Refused | None = None
    # Beside what runs there may be too little room for a large step: behind it there is all.
    for make in (_plan_beside, _plan_behind) if _may_run_beside(facts, progress) else (_plan_behind,):
        try:
            found.append(merge_plans(facts.old, facts.dataflow, progress, make(facts, progress, grouped)))
        except (DoesNotFit, InvalidInput) as refused:
            refusal = refused
    if found:
        work = share_work(facts.dataflow, facts.measured, facts.settings)
        return replace(min(found, key=lambda made: made.makespan_s), work=work)
    assert refusal is not None
    return refusal


def _may_run_beside(facts: _Facts, progress: Progress) -> bool:
    """Whether something runs, and as many applications as the author allows are one more at least."""
    most = facts.settings.applications
    return bool(progress.running) and (not most or count_applications(progress.running) < most)


def _plan_beside(facts: _Facts, progress: Progress, grouped: Grouped) -> Rest:
    """At once, on what the running groups leave free."""
    left = find_leftover(facts.dataflow, facts.settings, progress, progress.running, progress.now_s)
    return Rest(_plan_leftover(facts, left, grouped, subtract_held(facts.cluster, progress.running)), progress.now_s)


def _plan_behind(facts: _Facts, progress: Progress, grouped: Grouped) -> Rest:
    """After the last running group, on all there is."""
    start = max([progress.now_s, *(group.end_s for group in progress.running)])
    left = find_leftover(facts.dataflow, facts.settings, progress, (), start)
    return Rest(_plan_leftover(facts, left, grouped, facts.cluster), start)


def _plan_leftover(facts: _Facts, left: Leftover, grouped: Grouped, cluster: Cluster) -> Plan:
    dataflow = _draw_borders(left.dataflow, facts.old) if grouped == "as before, or cut" else left.dataflow
    groups = _fix_groups(left.dataflow, facts.old) if grouped == "as before" else None
    run = Run(
        pruning_input=facts.asked, stored=left.stored, policy=facts.policy, groups=groups, measured=facts.measured
    )
    return plan_of(dataflow, cluster, left.settings, run=run)


def _fix_groups(left: Dataflow, old: Plan) -> tuple[FixedGroup, ...]:
    """Those of ``old`` that are left."""
    there = {step.id for step in left.steps}
    return tuple(FixedGroup(one.id, one.steps, one.reason) for one in old.groups if there.issuperset(one.steps))


def _draw_borders(dataflow: Dataflow, old: Plan) -> Dataflow:
    """Each step with a setting that tells the groups of ``old`` apart."""
    home = {step: group.id for group in old.groups for step in group.steps}
    # Different settings, different colors: no rule of the planner need know of old groups.
    steps = (replace(step, application={**step.application, GROUP: home[step.id]}) for step in dataflow.steps)
    return replace(dataflow, steps=tuple(steps))


def _list_changes(old: Plan, new: Plan, progress: Progress, why: ChangeReason) -> Iterator[Change]:
    """What the new plan does otherwise with groups that were not finished."""
    before = {group.id: group for group in old.groups}
    runs = {group.id: group for group in progress.running}
    over = {group.id for group in progress.finished}
    for group in new.groups:
        if group.id not in over:
            what = _classify_change(
                before.get(group.id), group, restarted=group.id in progress.again or _has_moved(runs, group)
            )
            if what is not None:
                yield Change(group.id, what, progress.again.get(group.id, why))
    there = {group.id for group in new.groups}
    for name in before:
        if name not in there:
            yield Change(name, "dissolved", why)


def _has_moved(runs: Mapping[str, Group], group: Group) -> bool:
    """Whether the group was running and does not go on as it was."""
    return group.id in runs and group.progress != "running"


def _classify_change(before: Group | None, group: Group, *, restarted: bool) -> ChangeKind | None:
    if before is None or set(before.steps) != set(group.steps):
        return "new"
    if restarted:
        return "begins again"
    if _list_shapes(before) != _list_shapes(group):
        return "resized"
    return "moved" if _list_places(before) != _list_places(group) else None


def _list_shapes(group: Group) -> list[tuple[int, int]]:
    return sorted((box.cores, box.memory_mb) for box in group.containers)


def _list_places(group: Group) -> list[str]:
    return sorted(box.worker for box in group.containers)
