"""A group at launch: planned for what is free now, and rather elsewhere than never.

::

    free, where its steps are pinned    ──fits──> there
    free, anywhere                      ──fits──> there: what was pinned costs time, not an answer
    reserved by launches just starting  ────────> ask again in a moment
    nothing of that, standalone         ────────> ask again until someone leaves
    nothing of that, YARN, Kubernetes   ────────> their own queue, on all there is: they preempt, and grow, on demand
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation.group_fit import Fit, keep_together, remove_pins, select_steps
from airflow_dagsched.launch.escalation.reservations import Reservation, subtract_reservations
from airflow_dagsched.model.cluster import Cluster, make_idle
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.settings import Settings


class Chosen(Struct, frozen=True):
    """The plan, what it was made for, and what had to give way."""

    plan: Plan
    dataflow: Dataflow
    cluster: Cluster
    settings: Settings
    exact: bool
    """Whether its executors are to be kept on the planned workers."""
    note: str = ""
    """Why it is not where its author wants it, or not now; empty: it is."""

    @property
    def group(self) -> Group:
        """The only one: all steps run as one application."""
        return self.plan.groups[0]


def plan_on_free_cluster(known: Fit, steps: Iterable[str], reservations: Sequence[Reservation] = ()) -> Chosen | None:
    """Where ``steps`` go as one application; None: nowhere yet, ask again.

    Raises ``DoesNotFit`` where it is larger than the whole cluster.
    """
    alive, gone = drop_dead_pins(select_steps(known.dataflow, steps), known.cluster)
    room, wanted = subtract_reservations(known.cluster, reservations), keep_together(alive, known.settings)
    # The author's pins first; to give them up costs time only, so that comes before waiting.
    for candidate, note in _list_candidates(alive, gone):
        try:
            return Chosen(known.make_plan(candidate, room, wanted), candidate, room, wanted, exact=True, note=note)
        except DoesNotFit:
            continue
    anywhere, whole = remove_pins(alive), make_idle(known.cluster)
    # Before anybody is told to wait: what the idle cluster can't hold must fail now.
    made = known.make_plan(anywhere, whole, wanted)
    # A reservation ends within seconds. And an application in a standalone Master's queue has a driver program that
    # works already: it could hold an output that the application before it waits for, and keep it from ever leaving.
    if reservations or known.cluster.manager == "standalone":
        return None
    note = "too little is free now: it waits at the cluster manager"
    return Chosen(made, anywhere, whole, wanted, exact=False, note=note)


def drop_dead_pins(dataflow: Dataflow, cluster: Cluster) -> tuple[Dataflow, tuple[str, ...]]:
    """The dataflow without pins to workers that are not there, and the steps that lost all of theirs."""
    there = {worker.id for worker in cluster.workers}
    steps = tuple(replace(step, pinned=tuple(w for w in step.pinned if w in there)) for step in dataflow.steps)
    gone = (old.id for old, new in zip(dataflow.steps, steps, strict=True) if old.pinned and not new.pinned)
    return replace(dataflow, steps=steps), tuple(sorted(gone))


def _list_candidates(dataflow: Dataflow, gone: Sequence[str]) -> Iterator[tuple[Dataflow, str]]:
    yield dataflow, f"the workers that {', '.join(gone)} must be on are gone: any will do" if gone else ""
    if any(step.pinned for step in dataflow.steps):
        yield remove_pins(dataflow), "the workers that its steps are pinned to are full: any will do"
