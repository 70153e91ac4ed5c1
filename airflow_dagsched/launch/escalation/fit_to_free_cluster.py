"""A group at launch: as the run's plan has it on what is free now, and rather elsewhere than never.

::

    free, where its steps are pinned    ──fits──> there: its group of the plan of the run, what is too large in parts
    free, anywhere                      ──fits──> there: what was pinned costs time, not an answer
    reserved by launches just starting  ────────> ask again in a moment
    nothing of that, standalone         ────────> ask again until someone leaves, or parts fit (``split_group``)
    nothing of that, YARN, Kubernetes   ────────> their own queue, on all there is: they preempt, and grow, on demand

Others of the run may fit no more beside it, and what is submitted may be part of a group: then it is planned alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.launch.escalation.reservations import Reservation, subtract_reservations
from airflow_dagsched.launch.escalation.split_group import cut_too_large
from airflow_dagsched.launch.planning.facts import Facts, narrow_to_steps, remove_pins
from airflow_dagsched.launch.planning.plan_run import plan_run
from airflow_dagsched.launch.planning.planned import Planned
from airflow_dagsched.model.cluster import make_idle
from airflow_dagsched.plan.plan_types import Group


class Chosen(Struct, frozen=True):
    """The plan, the group of it that is launched, and what had to give way."""

    planned: Planned
    group: Group
    exact: bool
    """Whether its executors are to be kept on the planned workers."""
    note: str = ""
    """Why it is not where its author wants it, or not now; empty: it is."""


class NoRoomYet(Struct, frozen=True):
    """Nowhere for now: whoever wants it asks again."""

    facts: Facts
    """What was looked at."""
    whole_s: float
    """What the steps take as one application on the idle cluster."""
    is_short: bool
    """Launches that are just starting hold some of it, for seconds."""


def plan_on_free_cluster(
    known: Facts, steps: Iterable[str], reservations: Sequence[Reservation] = ()
) -> Chosen | NoRoomYet:
    """Where ``steps`` go as one application; raises ``DoesNotFit`` where it is larger than the whole cluster."""
    mine = tuple(steps)
    alive, gone = drop_dead_pins(known, mine)
    room = replace(alive, cluster=subtract_reservations(known.cluster, reservations))
    runs = (run for run in list_runs(room) if run.find_group(mine) is not None)
    for run in runs:
        planned = try_plan(run)
        if planned is not None:
            return Chosen(planned, planned.find_group(mine), exact=True, note=_say_gone(gone))
    alone = find_room_alone(room, mine, gone)
    if alone is not None:
        return alone
    # Before anybody is told to wait: what the idle cluster can't hold must fail now.
    idle = plan_run(free_all(narrow_to_steps(alive, mine)))
    # A reservation ends within seconds. And an application in a standalone Master's queue has a driver program that
    # works already: it could hold an output that the application before it waits for, and keep it from ever leaving.
    if reservations or known.cluster.manager == "standalone":
        return NoRoomYet(known, idle.plan.makespan_s, is_short=bool(reservations))
    made = _plan_run_on_all(alive, mine) or idle
    group = made.find_group(mine)
    note = "too little is free now: it waits at the cluster manager"
    return Chosen(name_waiting(made, (group.id,)), group, exact=False, note=note)


def find_room_alone(room: Facts, steps: Sequence[str], gone: Sequence[str] = ()) -> Chosen | None:
    """Where ``steps`` go as one application on what is free, whatever others of the run need; None: nowhere.

    :param gone: those of them whose workers are not there.
    """
    alone = narrow_to_steps(room, steps)
    candidates = [(alone, _say_gone(gone))]
    # The author's pins first; to give them up costs time only, so that comes before waiting.
    if any(step.pinned for step in alone.dataflow.steps):
        candidates.append((remove_pins(alone), "the workers that its steps are pinned to are full: any will do"))
    for candidate, note in candidates:
        planned = try_plan(candidate)
        if planned is not None:
            return Chosen(planned, planned.find_group(steps), exact=True, note=note)
    return None


def name_waiting(planned: Planned, groups: tuple[str, ...]) -> Planned:
    """``planned``, whose facts say that too little is free for these groups."""
    told = planned.plan.facts
    facts = replace(told, waiting=groups) if told is not None else None
    return replace(planned, plan=replace(planned.plan, facts=facts))


def _say_gone(gone: Sequence[str]) -> str:
    return f"the workers that {', '.join(gone)} must be on are gone: any will do" if gone else ""


def drop_dead_pins(facts: Facts, steps: Iterable[str]) -> tuple[Facts, tuple[str, ...]]:
    """The facts without pins to workers that are not there, and which of ``steps`` lost all of theirs."""
    there, dataflow = {worker.id for worker in facts.cluster.workers}, facts.dataflow
    alive = tuple(replace(step, pinned=tuple(w for w in step.pinned if w in there)) for step in dataflow.steps)
    gone = {old.id for old, new in zip(dataflow.steps, alive, strict=True) if old.pinned and not new.pinned}
    return replace(facts, dataflow=replace(dataflow, steps=alive)), tuple(sorted(gone.intersection(steps)))


def list_runs(room: Facts) -> Iterator[Facts]:
    """The run in its groups; then what is too large of them in parts."""
    yield room
    cut = cut_too_large(room)
    if cut is not room:
        yield cut


def _plan_run_on_all(alive: Facts, steps: Sequence[str]) -> Planned | None:
    """The plan of the run on the idle cluster; None: it has no group of these steps."""
    whole = free_all(cut_too_large(alive))
    return try_plan(whole) if whole.find_group(steps) is not None else None


def free_all(facts: Facts) -> Facts:
    """The facts on the idle cluster, without a word on where steps must be."""
    whole = replace(facts.origin, room="whole")
    return remove_pins(replace(facts, cluster=make_idle(facts.cluster), origin=whole))


def try_plan(facts: Facts) -> Planned | None:
    """None: it does not fit, or (of a whole run) its groups are not what a planner may take any more."""
    try:
        return plan_run(facts)
    except DoesNotFit:
        return None
    except InvalidInput:
        # A group of the run that cannot be planned is no reason for another one to fail; alone it is.
        if facts.origin.groups != "run":
            return None
        raise
