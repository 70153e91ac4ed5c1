"""High availability as a placement policy: room in offers in, containers with standbys and warm-ups out.

The unit of the strategies is the worker: offers of one worker are its room together, and its capacity is the cores
of all of them. A copy that is not active takes the memory of its state (of its step, where that is not declared), and
disk, but no cores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.order import natural_key, natural_sort
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.capacity import check_capacity
from airflow_dagsched.placement.high_availability.assign import assign
from airflow_dagsched.placement.high_availability.space import Seat, Space
from airflow_dagsched.placement.high_availability.values import Instance, Worker
from airflow_dagsched.placement.request import Request, Work, request_of
from airflow_dagsched.placement.room import SLACK, Rooms, rooms_of
from airflow_dagsched.placement.schedule import schedule_of
from airflow_dagsched.placement.settings import SPARK, PlacementSettings
from airflow_dagsched.placement.values import Amounts, Assigned, InstancePlan, Offer, TaskSchedulePlan, instance_id


class HighAvailability:
    """Where the state is."""

    def __init__(self) -> None:
        self.settings = SPARK

    def initialize(self, settings: PlacementSettings) -> None:
        """Place by these settings from now on."""
        self.settings = settings

    def schedule(self, dataflow: Dataflow, workers: Sequence[Offer], state: State) -> TaskSchedulePlan:
        """See ``PlacementPolicy``. ``state`` tells the lags and the assignment before."""
        request = request_of(dataflow, workers, self.settings)
        limits = rooms_of(request)
        check_capacity(request, limits)
        steps = {step.id: step for step in dataflow.steps}
        works = sorted(_instances(request), key=lambda pair: natural_key(instance_id(pair[0].step, pair[1])))
        hosts = _hosts(request, limits)
        space = Space(
            request,
            limits,
            offers=tuple(hosts.values()),
            works=works,
            states=[_state(steps[work.step], work) for work, _ in works],
        )
        instances = [_instance(steps[work.step], index) for work, index in works]
        known = [_worker(request, worker, offers) for worker, offers in hosts.items()]
        made, seats = assign(instances, known, state, self.settings, space)
        return _schedule(space, list(hosts), made, seats)


def _instances(request: Request) -> list[tuple[Work, int]]:
    return [(work, index) for work in request.works for index in range(work.parallelism)]


def _instance(step: Step, index: int) -> Instance:
    return Instance(
        id=instance_id(step.id, index),
        step=step.id,
        stateful=step.stateful,
        weight=step.weight,
        pinned=frozenset(step.pinned),
    )


def _state(step: Step, work: Work) -> Amounts:
    return Amounts(step.state_mb or work.needs.memory_mb, work.needs.disk_mb)


def _hosts(request: Request, limits: Sequence[Rooms]) -> dict[str, list[int]]:
    """Offers by worker, in natural order; without those that no instance fits in."""
    needs = [work.needs.values() for work in request.works]
    found: dict[str, list[int]] = {}
    for at, limit in enumerate(limits):
        if any(all(need <= has + SLACK for need, has in zip(one, limit, strict=True)) for one in needs):
            found.setdefault(request.offers[at].worker, []).append(at)
    return {worker: found[worker] for worker in natural_sort(found)}


def _worker(request: Request, worker: str, offers: Sequence[int]) -> Worker:
    first = request.offers[offers[0]]
    cores = sum(request.offers[at].cores or 1 for at in offers)
    rack = {} if first.rack is None else {"rack": first.rack}
    return Worker(worker, max(1, int(cores)), {**first.tags, **rack})


def _schedule(space: Space, workers: Sequence[str], made: Assigned, seats: Mapping[Seat, int]) -> TaskSchedulePlan:
    """``seats`` by position of instance and worker, both in natural order."""
    request, place = space.request, {worker: at for at, worker in enumerate(workers)}
    places = [[0] * work.parallelism for work in request.works]
    copies: dict[str, dict[int, list[InstancePlan]]] = {"standby": {}, "warmup": {}}
    for at, (work, index) in enumerate(space.works):
        name = instance_id(work.step, index)
        places[work.number][index] = seats[at, place[made.assignment.active[name]]]
        for role, kept in copies.items():
            for worker in getattr(made.assignment, role).get(name, ()):
                one = InstancePlan(work.step, work.number, index, space.states[at])
                kept.setdefault(seats[at, place[worker]], []).append(one)
    schedule = schedule_of(request, places, _reason(made), copies["standby"], copies["warmup"])
    return replace(schedule, assigned=made)


def _reason(made: Assigned) -> str:
    counts = Counter(moving.reason.partition(":")[0].partition(" of ")[0] for moving in made.movements)
    told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    return f"where its state is{f'; movements: {told}' if told else ''}"
