"""A place for every instance that has none, beside those that stay where they are.

An instance with copies to choose from goes where the load is lightest; those after it may change that, so in the end
instances are shifted on along their copies as long as that lowers the higher of two loads::

    x has copies on a and b, y on b and c;  a is full, c has room     x on a, y on b  ──>  x on b, y on c
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.space import Seat, Seats

Choices = Mapping[int, Sequence[int]]
"""Workers by instance."""


def sum_active_loads(facts: Facts, active: Mapping[int, int]) -> list[float]:
    """Weight by worker."""
    return sum_loads(facts, active.items())


def sum_loads(facts: Facts, seats: Iterable[Seat]) -> list[float]:
    """Weight by worker of copies, of which an instance may have several."""
    loads = [0.0] * len(facts.workers)
    for instance, worker in seats:
        loads[worker] += facts.get_weight(instance)
    return loads


def place_unassigned(facts: Facts, active: dict[int, int], unassigned: dict[int, list[int]], seats: Seats) -> None:
    """Place the homeless beside those in ``active``: those with the least choice first, each where it loads least;
    who has no choice of its own, or no room there, may go anywhere. Raises ``DoesNotFit``.
    """
    loads = sum_active_loads(facts, active)
    choosy = sorted((at for at in unassigned if unassigned[at]), key=lambda at: (len(unassigned[at]), at))
    bound = [at for at in choosy if _place_one(facts, active, loads, at, unassigned[at], seats)]
    rebalance_loads(facts, active, loads, {instance: unassigned[instance] for instance in bound}, seats)
    for instance in sorted(unassigned.keys() - set(bound)):
        if not _place_one(facts, active, loads, instance, facts.allowed[instance], seats):
            what = f"instance {facts.instances[instance].id!r}"
            raise DoesNotFit(what, "workers with room for it beside the others", 1, 0, "workers")


def _place_one(
    facts: Facts, active: dict[int, int], loads: list[float], instance: int, among: Sequence[int], seats: Seats
) -> bool:
    """Place it on the first of those that are least loaded with it on top and have room for it."""
    weight = facts.get_weight(instance)
    after = [(loads[worker] + weight) / facts.capacity[worker] for worker in among]
    worker: int | None = among[after.index(min(after))]
    # Mostly the lightest has room: the others are sorted only where it has none.
    if not seats.activate_instance(instance, among[after.index(min(after))]):
        order = sorted(range(len(among)), key=after.__getitem__)
        worker = next((among[at] for at in order if seats.activate_instance(instance, among[at])), None)
    if worker is None:
        return False
    active[instance] = worker
    loads[worker] += weight
    return True


def rebalance_loads(facts: Facts, active: dict[int, int], loads: list[float], choices: Choices, seats: Seats) -> None:
    """Shift instances that have a place, among their ``choices``, until that lowers no load any more."""
    several = [instance for instance, workers in choices.items() if len(workers) > 1]
    # Each shift lowers the higher of two loads: the sorted loads fall, so this ends.
    while any(_shift_instance(facts, active, loads, instance, choices, seats) for instance in several):
        pass


def _shift_instance(
    facts: Facts, active: dict[int, int], loads: list[float], instance: int, choices: Choices, seats: Seats
) -> bool:
    """Whether it, and those that make room for it, went to other workers, the last to one less loaded."""
    source, weight = active[instance], facts.get_weight(instance)
    came = _find_reachable(facts, active, instance, choices, seats)
    after, target = min(((loads[at] + weight) / facts.capacity[at], at) for at in (source, *came))
    # By more than rounding: else an exchange of equals could go on for ever.
    if target == source or after >= loads[source] / facts.capacity[source] - TOLERANCE:
        return False
    loads[source] -= weight
    loads[target] += weight
    while target != source:
        goes = came[target]
        before = active[goes]
        seats.move_active(goes, before, target)
        active[goes], target = target, before
    return True


def _find_reachable(
    facts: Facts, active: dict[int, int], instance: int, choices: Choices, seats: Seats
) -> dict[int, int]:
    """Workers it can make one like it go to, the nearest first; with the instance that would go there last."""
    # Only its equals may make room for it: then no load on the way changes but the first and the last.
    weight = facts.get_weight(instance)
    held: dict[int, list[int]] = {}
    for other in choices:
        if facts.get_weight(other) == weight:
            held.setdefault(active[other], []).append(other)
    came: dict[int, int] = {}
    going = [instance]
    for like in going:
        for at in choices[like]:
            if at not in came and at != active[instance] and seats.may_activate(like, at):
                came[at] = like
                going.extend(held.get(at, ()))
    return came
