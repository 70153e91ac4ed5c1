"""High availability as a placement policy: room in offers in, containers with standbys and warm-ups out.

The unit of the strategies is the worker: offers of one worker are its room together, and its capacity is the cores
of all of them. A copy that is not active takes the memory of its state (of its step, where that is not declared), and
disk, but no cores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Dataflow, Step
from airflow_dagsched.model.order import natural_key, sort_naturally
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.high_availability.assign import assign_instances, convert_outcome
from airflow_dagsched.placement.high_availability.space import Space
from airflow_dagsched.placement.high_availability.values import How, Instance, Movement, Outcome, Worker
from airflow_dagsched.placement.offer_capacity import compute_limits
from airflow_dagsched.placement.policy import BuiltInPolicy
from airflow_dagsched.placement.refusals import check_capacity
from airflow_dagsched.placement.request import Request, StepRequest, make_request
from airflow_dagsched.placement.schedule import make_schedule
from airflow_dagsched.placement.values import Amounts, InstancePlan, Limit, Offer, TaskSchedulePlan, name_instance


class HighAvailability(BuiltInPolicy):
    """Where the state is."""

    def schedule(self, dataflow: Dataflow, workers: Sequence[Offer], state: State) -> TaskSchedulePlan:
        """See ``PlacementPolicy``. ``state`` tells the lags and the assignment before."""
        request = make_request(dataflow, workers, self.settings)
        limits = compute_limits(request)
        check_capacity(request, limits)
        declared = {step.id: step for step in dataflow.steps}
        # By whole name, as ``gather_facts`` sorts: positions in space and facts have to agree.
        numbered = sorted(request.list_instances(), key=lambda pair: natural_key(name_instance(pair[0].id, pair[1])))
        by_worker = _group_offers(request, limits)
        space = Space(
            request,
            limits,
            offers=tuple(by_worker.values()),
            instances=numbered,
            states=[_get_state_needs(declared[step.id], step) for step, _ in numbered],
        )
        instances = [make_instance(declared[step.id], index) for step, index in numbered]
        live = [_make_worker(request, worker, offers) for worker, offers in by_worker.items()]
        outcome = assign_instances(instances, live, state, self.settings, space)
        return _make_schedule(space, list(by_worker), outcome)


def make_instance(step: Step, index: int) -> Instance:
    """As the strategies know it."""
    return Instance(
        id=name_instance(step.id, index),
        step=step.id,
        stateful=step.stateful,
        weight=step.weight,
        pinned=frozenset(step.pinned),
    )


def _get_state_needs(declared: Step, step: StepRequest) -> Amounts:
    """What a copy of the state takes where nothing runs."""
    # No cores: a copy that is not active only restores.
    return Amounts(declared.state_mb or step.needs.memory_mb, step.needs.disk_mb)


def _group_offers(request: Request, limits: Sequence[Limit]) -> dict[str, list[int]]:
    """Offers by worker, in natural order; without those that no instance fits in."""
    offers: dict[str, list[int]] = {}
    for at, limit in enumerate(limits):
        if any(step.needs.fits_within(limit) for step in request.steps):
            offers.setdefault(request.offers[at].worker, []).append(at)
    return {worker: offers[worker] for worker in sort_naturally(offers)}


def _make_worker(request: Request, worker: str, offers: Sequence[int]) -> Worker:
    first = request.offers[offers[0]]
    # Kafka counts threads; here a core runs an instance. Where no limit is known all workers count alike.
    cores = sum(request.offers[at].cores or 1 for at in offers)
    return Worker(worker, max(1, int(cores)), name_tags(first.tags, first.rack))


def name_tags(tags: Mapping[str, str], rack: str | None) -> dict[str, str]:
    """Those of a worker, its rack among them."""
    # A tag like any other for ``spread_tags``; the cluster's word goes before a tag of that name.
    return {**tags, **({} if rack is None else {"rack": rack})}


def _make_schedule(space: Space, workers: Sequence[str], outcome: Outcome) -> TaskSchedulePlan:
    """The outcome's seats are by position of instance and worker, both in natural order."""
    request, position = space.request, {worker: at for at, worker in enumerate(workers)}
    placement = [[0] * step.parallelism for step in request.steps]
    copies: dict[str, dict[int, list[InstancePlan]]] = {"standby": {}, "warmup": {}}
    for at, (step, index) in enumerate(space.instances):
        name = name_instance(step.id, index)
        placement[step.number][index] = outcome.seats[at, position[outcome.assignment.active[name]]]
        for role, by_offer in copies.items():
            for worker in getattr(outcome.assignment, role).get(name, ()):
                copy = InstancePlan(step.id, step.number, index, space.states[at])
                by_offer.setdefault(outcome.seats[at, position[worker]], []).append(copy)
    reason = _explain_movements(outcome.movements)
    schedule = make_schedule(request, placement, reason, copies["standby"], copies["warmup"])
    return replace(schedule, assigned=convert_outcome(outcome))


COUNTED: dict[How, str] = {"hand over": "hand-over", "warm up": "warm-up", "wait": "waits", "no room": "waits"}
"""What a movement counts as in the reason."""


def _explain_movements(movements: Iterable[Movement]) -> str:
    counts = Counter(COUNTED[movement.how] for movement in movements)
    listed = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    return f"where its state is{f'; movements: {listed}' if listed else ''}"
