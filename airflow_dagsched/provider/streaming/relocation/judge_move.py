"""Whether a stream that runs is to move, and where to.

The policy says what would move, knowing where the state is. Then it is looked where a second graph has room now, beside
the first: no move is made but to what is strictly better there. So moves end, whatever each look finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.placement.high_availability.schedule import make_instance, name_tags
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.strictly_better import is_strictly_better
from airflow_dagsched.placement.high_availability.values import Instance, Worker
from airflow_dagsched.placement.values import name_instance

StayCode = Literal[
    "by no state", "pauses", "no executors", "handed over", "level", "no room", "same workers", "no better"
]
SENTENCES: Mapping[StayCode, str] = {
    "by no state": "it is placed by another policy than high_availability, which moves nothing",
    "pauses": "its graphs run one after another, so a move would keep its table waiting: a person may want that, by "
    "`airflow dagsched stream switch DAG --move`",
    "no executors": "it has no executors, and without them it can hand nothing over",
    "handed over": "another graph takes over from it",
    "level": "the policy would leave its instances on {workers}",
    "no room": "no other workers have room for a second graph beside it now",
    "same workers": "there is room for a second graph on {workers} alone, where it is",
    "no better": "on {workers} it would be no better off",
}


@dataclass(frozen=True, slots=True)
class Stay:
    """It stays where it is, as of one look."""

    code: StayCode
    workers: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """A sentence without a full stop."""
        return SENTENCES[self.code].format(workers=", ".join(self.workers))


@dataclass(frozen=True, slots=True)
class Move:
    """It is better off elsewhere, as of one look. Equal looks give equal values."""

    epoch: int
    """That is to be replaced by one of the same code."""
    source: tuple[str, ...]
    """Workers that it is on."""
    target: tuple[str, ...]
    among: tuple[str, ...]
    """All workers that are there: where some come or go, it is another look."""
    instances: int
    """How many of it the policy would move."""

    @property
    def reason(self) -> str:
        """A sentence without a full stop."""
        gone = [worker for worker in self.source if worker not in self.among]
        why = f"{', '.join(gone)} gone" if gone else f"{self.instances} of its instances are better off there"
        return f"epoch {self.epoch} moves from {', '.join(self.source)} to {', '.join(self.target)}: {why}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A graph, as it would be planned."""

    active: Mapping[str, str]
    """Instance -> worker."""
    moving: int | None
    """Instances that the policy moves; None: it is no policy that knows state."""


def read_placed(chosen: Chosen) -> Placed:
    """What of a plan matters here."""
    plan = chosen.planned.plan
    active = {name_instance(*each): box.worker for box in chosen.group.containers for each in box.instances}
    moving = {moving.instance for moving in plan.movements}
    return Placed(active, len(moving) if plan.assignment is not None else None)


def judge_move(  # noqa: PLR0917 - what is, what the policy would do, what can be done
    epoch: int,
    active: Mapping[str, str],
    wished: Placed | None,
    possible: Placed | None,
    steps: Sequence[Step],
    cluster: Cluster,
    settings: Settings,
) -> Move | Stay:
    """One look.

    :param active: instance -> worker that it is on now.
    :param wished: by the policy, that knows where the state is, and has the graph's own room beside what is free;
        None: it finds no room, for a worker is gone.
    :param possible: on what is free, for a second graph; None: nowhere.
    :param steps: of the graph.
    """
    source = tuple(sort_naturally(set(active.values())))
    workers = [each for each in cluster.workers if each.cores]
    is_lost = not {worker.id for worker in workers}.issuperset(source)
    if wished is not None and wished.moving is None:
        return Stay("by no state")
    moving = (wished.moving or 0) if wished is not None else 0
    if not moving and not is_lost:
        return Stay("level", source)
    if possible is None:
        return Stay("no room")
    target = tuple(sort_naturally(set(possible.active.values())))
    # Spark shares its work out among the executors of an application, whichever instance is planned for which.
    if target == source:
        return Stay("same workers", source)
    instances = [make_instance(step, index) for step in steps for index in range(step.parallelism)]
    # By all cores of each: what is free of them changes with what others run, and with where the graph itself is.
    whole = [Worker(each.id, each.cores, name_tags(each.tags, each.rack)) for each in workers]
    if not _is_better(instances, whole, possible.active, active, settings):
        return Stay("no better", target)
    return Move(epoch, source, target, tuple(sort_naturally(each.id for each in workers)), moving or len(active))


def _is_better(
    instances: Sequence[Instance], workers: Sequence[Worker], possible: Mapping[str, str], active: Mapping[str, str],
    settings: Settings,
) -> bool:  # fmt: skip
    names = {each.id for each in instances}
    # An instance of which nobody knows where it is can't be better off.
    if not names <= possible.keys() & active.keys():
        return False
    now, then = ({name: places[name] for name in names} for places in (active, possible))
    return is_strictly_better(instances, workers, then, now, settings)
