"""A group at launch: as the run's plan has it on what is free now, and rather elsewhere than never.

::

    free, where its steps are pinned    ──fits──> there: its group of the plan of the run
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
from airflow_dagsched.launch.planning.facts import Facts, narrow_to_steps, remove_pins
from airflow_dagsched.launch.planning.plan_run import Planned, plan_run
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


def plan_on_free_cluster(known: Facts, steps: Iterable[str], reservations: Sequence[Reservation] = ()) -> Chosen | None:
    """Where ``steps`` go as one application; None: nowhere yet, ask again.

    Raises ``DoesNotFit`` where it is larger than the whole cluster.
    """
    mine = tuple(steps)
    alive, gone = drop_dead_pins(known, mine)
    room = replace(alive, cluster=subtract_reservations(known.cluster, reservations))
    # The author's pins first; to give them up costs time only, so that comes before waiting.
    for candidate, note in _list_candidates(room, mine, gone):
        planned = _try_plan(candidate)
        if planned is not None:
            return Chosen(planned, planned.find_group(mine), exact=True, note=note)
    whole = replace(alive.origin, room="whole")
    # Before anybody is told to wait: what the idle cluster can't hold must fail now.
    made = plan_run(remove_pins(narrow_to_steps(replace(alive, cluster=make_idle(known.cluster), origin=whole), mine)))
    # A reservation ends within seconds. And an application in a standalone Master's queue has a driver program that
    # works already: it could hold an output that the application before it waits for, and keep it from ever leaving.
    if reservations or known.cluster.manager == "standalone":
        return None
    note = "too little is free now: it waits at the cluster manager"
    return Chosen(made, made.find_group(mine), exact=False, note=note)


def drop_dead_pins(facts: Facts, steps: Iterable[str]) -> tuple[Facts, tuple[str, ...]]:
    """The facts without pins to workers that are not there, and which of ``steps`` lost all of theirs."""
    there, dataflow = {worker.id for worker in facts.cluster.workers}, facts.dataflow
    alive = tuple(replace(step, pinned=tuple(w for w in step.pinned if w in there)) for step in dataflow.steps)
    gone = {old.id for old, new in zip(dataflow.steps, alive, strict=True) if old.pinned and not new.pinned}
    return replace(facts, dataflow=replace(dataflow, steps=alive)), tuple(sorted(gone.intersection(steps)))


def _list_candidates(room: Facts, steps: Sequence[str], gone: Sequence[str]) -> Iterator[tuple[Facts, str]]:
    """Facts to plan by, the best first, each with what had to give way for it."""
    note = f"the workers that {', '.join(gone)} must be on are gone: any will do" if gone else ""
    if room.find_group(steps) is not None:
        yield room, note
    alone = narrow_to_steps(room, steps)
    yield alone, note
    if any(step.pinned for step in alone.dataflow.steps):
        yield remove_pins(alone), "the workers that its steps are pinned to are full: any will do"


def _try_plan(facts: Facts) -> Planned | None:
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
