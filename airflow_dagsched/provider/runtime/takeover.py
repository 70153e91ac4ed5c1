"""What a try of a launch task takes of later launch tasks: facts of the run, the decision, its claim.

It decides as it begins, and again once its own steps have ended well: then by facts of that moment.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_dagsched.launch.history.forecast import Run, price_groups
from airflow_dagsched.launch.moves.claims import Claims
from airflow_dagsched.launch.moves.eligible import Sight
from airflow_dagsched.launch.moves.elsewhere import BUSY
from airflow_dagsched.launch.moves.takeover import (
    BESIDE,
    NOTHING_TAKEN,
    Ahead,
    Decision,
    Price,
    add_beside,
    decide,
    drop_done_edges,
    move_steps,
)
from airflow_dagsched.launch.planning.facts import ONLY
from airflow_dagsched.launch.protocol.feed import FINISHED, NOT_BEGUN, has_ended_well
from airflow_dagsched.model.validate import build_valid_graph
from airflow_dagsched.plan.problem.rules import apply_rules
from airflow_dagsched.provider.runtime.foresight import MOST_STEPS, describe_run
from airflow_dagsched.provider.runtime.moves import has_own_ended

if TYPE_CHECKING:
    from airflow_dagsched.model.graph import Graph
    from airflow_dagsched.model.state import State
    from airflow_dagsched.plan.grouping.coarsest import Grouped
    from airflow_dagsched.provider.moving.moves import Moves
    from airflow_dagsched.provider.runtime.attempt import Attempt
    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec

log = logging.getLogger(__name__)


def take_over(attempt: Attempt) -> Decision:
    """As it begins, decide what to take, and claim it. Whatever hinders that, the try runs its own steps."""
    return _try_takeover(attempt, is_over=False)


def take_more(attempt: Attempt) -> tuple[str, ...]:
    """Once its own steps have ended, what it takes before its task ends: nothing, if they did not end well, or if what
    it took before was too much. A task that has had nothing to run ends at once.
    """
    moves = attempt.moves
    if moves is None or moves.gave_back or not attempt.follower.applications or not has_own_ended(attempt):
        return ()
    # A try that does not count any more takes nothing; who stopped it wants it to end.
    attempt.standing.demand()
    return () if attempt.launch.stopped else _try_takeover(attempt, is_over=True).take


def _try_takeover(attempt: Attempt, *, is_over: bool) -> Decision:
    if attempt.moves is None:
        return NOTHING_TAKEN
    try:
        decision = _take_over(attempt, attempt.moves, is_over=is_over)
    except Exception as error:  # noqa: BLE001 - whatever it is, the group can be launched without
        log.warning("no step of a later launch task is taken: %s: %s", type(error).__name__, error)
        decision = Decision(reason="no forecast")
    log.info("%s", decision.line())
    attempt.decisions.append(decision)
    return decision


def _take_over(attempt: Attempt, moves: Moves, *, is_over: bool) -> Decision:
    if _is_limited(attempt):
        return Decision(reason="limited")
    if is_over:
        attempt.look_anew()
    claims = moves.file.read()
    sight = _look_around(attempt, claims, is_over=is_over)
    if not sight.mine:
        return Decision(reason="has nothing to run")
    ahead = _draw_groups(attempt, claims, is_over=is_over)
    decision = decide(ahead, sight, _make_price(attempt, sight, is_over=is_over))
    if not decision.take:
        return decision
    regrouped = _regroup(attempt.spec, ahead, decision.take)
    if not moves.take({step: claims.claims.get(step) for step in decision.take}):
        return Decision(reason="nothing is ready")  # others were quicker
    attempt.regrouped = regrouped
    return decision


def _make_price(attempt: Attempt, sight: Sight, *, is_over: bool) -> Price:
    """Of groups in the run as it is now."""
    run, state = describe_run(attempt.spec, attempt.facts, attempt.hook)
    dataflow = drop_done_edges(run.facts.dataflow, sight.done | sight.over)
    left = replace(run, facts=replace(run.facts, dataflow=dataflow))
    # Its task is still running, its group is over: nothing of it is left to wait for.
    ended = {*sight.over, *((attempt.spec.group.id,) if is_over else ())}
    over = [name for name in sorted(ended) if name not in state.finished]
    running = tuple(name for name in state.running if name not in ended)
    return partial(_price, left, replace(state, finished=(*state.finished, *over), running=running))


def _draw_groups(attempt: Attempt, claims: Claims, *, is_over: bool) -> Ahead:
    """Who runs what, before anything is taken."""
    flow, spec = attempt.flow, attempt.spec
    graph, rules = apply_rules(build_valid_graph(flow.graph.dataflow), flow.settings)
    groups = tuple(spec.launches.values())
    # What is offered waits for room: an application of its own, whatever else its launch task runs.
    groups += tuple(replace(group, id=_name_offered(group), steps=()) for group in groups)
    ahead = Ahead(graph, rules, spec.group.id, groups, flow.settings.replan_margin, is_over)
    return replace(ahead, groups=move_steps(ahead, _find_homes(attempt, claims)))


def _regroup(spec: LaunchSpec, before: Ahead, take: tuple[str, ...]) -> LaunchSpec:
    """The launch task as it is planned now: by the run's plan, with what it has taken in its group, or, once that is
    over, in one beside it.
    """
    ahead, home = (add_beside(before), BESIDE) if before.is_over else (before, before.mine)
    groups = move_steps(ahead, dict.fromkeys(take, home))
    # In a plan each group is called after its first step, and its first may have moved.
    named = {group.id: replace(group, id=_name_group(before.graph, group.steps, len(groups))) for group in groups}
    tasks = {group.id: task_id for task_id, group in spec.launches.items()}
    launches = {tasks.get(group, group): made for group, made in named.items()}
    return replace(spec, group=named[home], launches=launches)


def _name_group(graph: Graph, steps: tuple[str, ...], groups: int) -> str:
    return ONLY if groups == 1 else f"{ONLY}_{graph.ids[min(graph.index[step] for step in steps)]}"


def _is_limited(attempt: Attempt) -> bool:
    """Whether more steps could take this launch task over a limit that was set for its own."""
    flow, careful = attempt.flow, attempt.memory.level > 0 or attempt.is_per_step
    large = len(flow.steps) > MOST_STEPS
    return careful or large or attempt.launch.execution_timeout is not None or flow.pool_cores is not None


def _look_around(attempt: Attempt, claims: Claims, *, is_over: bool) -> Sight:
    facts, flow, ours = attempt.facts, attempt.flow, attempt.spec.launches
    ends = [done for feed in facts.feeds.values() for done in feed.steps.values()]
    mirrors = {name: facts.states.get(step.task_id, "") for name, step in flow.steps.items()}
    done = {end.step for end in ends if has_ended_well(end)} | attempt.follower.adopted
    done |= {name for name, state in mirrors.items() if state in ("success", "skipped")}
    waiting = [each for task_id, each in ours.items() if facts.states.get(task_id, "") in NOT_BEGUN]
    busy = {task_id for task_id in ours if facts.states.get(task_id, "") in BUSY}
    assert attempt.moves is not None
    mine, names = attempt.moves.mine, [name for group in waiting for name in group.steps]
    ahead = {*claims.find_free(mine, [*names, *claims.list_offered(mine)], busy)}
    over = {each for each in flow.graph.ordinary if _is_over(facts.find_states(each, flow.graph.ordinary))}
    return Sight(
        mine=frozenset(attempt.own) - (frozenset() if is_over else done | attempt.moves.awaited.keys()),
        open=frozenset(name for name in ahead - done if mirrors[name] not in FINISHED),
        done=frozenset(done),
        over=frozenset(over),
    )


def _is_over(states: dict[str, str]) -> bool:
    """Whether a task, or each of its instances, has ended; of one that is not known nobody can tell."""
    return bool(states) and all(state in FINISHED for state in states.values())


def _find_homes(attempt: Attempt, claims: Claims) -> dict[str, str]:
    """Step -> the group that runs it, or has, where that is not its own."""
    ours = attempt.spec.launches
    ran = {
        done.step: ours[task_id].id
        for task_id, feed in attempt.facts.feeds.items()
        for done in feed.steps.values()
        if has_ended_well(done)
    }
    claimed = {
        step: _name_offered(ours[claim.by]) if claim.offered else ours[claim.by].id
        for step, claim in claims.claims.items()
        if claim.by in ours
    }
    return {**claimed, **ran}


def _name_offered(group: Grouped) -> str:
    return f"{group.id}_offered"


def _price(run: Run, state: State, groups: tuple[Grouped, ...]) -> float | None:
    """Seconds until all that is left ends, if these are the launch tasks."""
    there = {group.id for group in groups} | {task.id for task in run.facts.dataflow.tasks}
    # One whose steps have all moved is a launch task without an application.
    known = replace(
        state,
        finished=tuple(name for name in state.finished if name in there),
        running=tuple(name for name in state.running if name in there),
        elapsed_s={name: seconds for name, seconds in state.elapsed_s.items() if name in there & {*state.running}},
    )
    return price_groups(replace(run, groups=groups), known)
