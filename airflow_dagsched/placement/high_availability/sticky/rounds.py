"""What of the targets can be had in this round.

    target has x on B        B caught up:  B takes over, A gives up
    x is active on A         B is not:     A keeps it, B warms up, if a warm-up is to spare

Warm-ups already begun go on, actives come before standbys, shorter lags before longer ones. A standby that is
missing is planted at once: nothing has to wait for it. Until a movement is done its instance keeps the standbys it has.
What is active has room before any standby, a standby before any warm-up; what has no room now waits, or is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.failover import rearranged
from airflow_dagsched.placement.high_availability.sticky.owners import Owners, Rank, is_ready, rank
from airflow_dagsched.placement.high_availability.sticky.stateless import stateless_now
from airflow_dagsched.placement.high_availability.sticky.targets import Targets
from airflow_dagsched.placement.high_availability.values import Copy, How, Movement, Outcome


class _Wish(Struct, frozen=True):
    """A copy the target has on a worker that has not caught up."""

    copy: Copy
    instance: int
    source: int
    target: int


def this_round(facts: Facts, owners: Owners, targets: Targets, seats: Seats) -> Outcome:
    """The assignment with what is on its way. A follow-up is asked for if a copy is catching up, so can change it;
    where room is limited, also after any other change.

    ``seats`` are those of the owners. Raises ``DoesNotFit``.
    """
    copies = Copies(facts)
    now = _hand_over(facts, owners, targets, seats)
    stateless = stateless_now(facts, targets.stateless, seats)
    for instance, worker in (now | stateless).items():
        copies.add(copies.active, worker, instance)
    wanted = {instance: _standbys(facts, owners, targets, instance, now[instance]) for instance in facts.stateful}
    _stand_by(copies, owners, {instance: workers for instance, (workers, _) in wanted.items()}, seats)
    wishes = [wish for _, found in wanted.values() for wish in found]
    movements = tuple(_plant(copies, owners, wishes, seats))
    made = copies.assignment()
    reached = Targets(now, {at: copies.standbys_of(at) for at in facts.stateful}, stateless)
    held = {**seats.active, **seats.copies} if facts.space is not None else {}
    goes_on = any(moving.how == "warm up" for moving in movements) or _goes_on(facts, targets, reached, made, seats)
    return Outcome(made, movements, goes_on, held)


def _goes_on(facts: Facts, targets: Targets, reached: Targets, made: Assignment, seats: Seats) -> bool:
    """Whether the next round changes something though nothing has to catch up.

    What changed may have made room for what had none: where room is limited there is rest only where nothing
    changes any more. Nor is there before standbys are where a failure costs least.
    """
    if facts.space is not None and (reached != targets if facts.previous is None else made != facts.previous):
        return True
    if facts.previous is None or made == facts.previous:
        return False
    return rearranged(facts, reached.active, reached.standbys, seats) != reached.standbys


def _hand_over(facts: Facts, owners: Owners, targets: Targets, seats: Seats) -> dict[int, int]:
    """Where each is active from now on: those whose target is ready go there as soon as there is room."""
    now = dict(owners.active)
    going = [
        instance
        for instance, target in targets.active.items()
        if target != now[instance] and is_ready(facts, owners, instance, target)
    ]
    while gone := [instance for instance in going if _went(now, targets, seats, instance)]:
        going = [instance for instance in going if instance not in gone]
    return now


def _went(now: dict[int, int], targets: Targets, seats: Seats, instance: int) -> bool:
    target = targets.active[instance]
    if not seats.may_run(instance, target):
        return False
    seats.move(instance, now[instance], target)
    now[instance] = target
    return True


def _standbys(
    facts: Facts, owners: Owners, targets: Targets, instance: int, active: int
) -> tuple[list[int], list[_Wish]]:
    """The workers of its standbys in this round, and what has to catch up for the target's."""
    target, wanted = targets.active[instance], targets.standbys[instance]
    if active == target:
        return _with_keepers(facts, owners, instance, active, wanted)
    return _kept(owners, instance, active, [*wanted, target]), [_Wish("active", instance, active, target)]


def _with_keepers(
    facts: Facts, owners: Owners, instance: int, active: int, wanted: Sequence[int]
) -> tuple[list[int], list[_Wish]]:
    """Those that have caught up, are standbys already, or have nobody to hold the place for them."""
    held = [at for at in (*owners.standbys[instance], owners.active[instance]) if at != active]
    spare = sorted((rank(facts, instance, at), at) for at in held if at not in wanted)
    found, wishes = [], []
    for worker in wanted:
        late = rank(facts, instance, worker)
        if worker not in held and spare and spare[0][0] < late:
            keeper = spare.pop(0)[1]
            found.append(keeper)
            wishes.append(_Wish("standby", instance, keeper, worker))
        else:
            found.append(worker)
    return found, wishes


def _kept(owners: Owners, instance: int, owner: int, wanted: Sequence[int]) -> list[int]:
    """As many as wanted: those there are, then those of the target, then the copy that is to take over."""
    before = owners.standbys[instance]
    choice = [at for at in before if at in wanted] + [at for at in before if at not in wanted] + list(wanted)
    return [at for at in dict.fromkeys(choice) if at != owner][: len(wanted) - 1]


def _stand_by(copies: Copies, owners: Owners, wanted: dict[int, list[int]], seats: Seats) -> None:
    """Those there are before new ones, as long as there is room."""
    pairs = [(instance, worker) for instance, workers in wanted.items() for worker in workers]
    for instance, worker in sorted(pairs, key=lambda pair: pair[1] not in owners.standbys[pair[0]]):
        if seats.keep(instance, worker):
            copies.add(copies.standby, worker, instance)


def _plant(copies: Copies, owners: Owners, wishes: list[_Wish], seats: Seats) -> Iterator[Movement]:
    facts, left = copies.facts, copies.facts.settings.max_warmups
    for wish in sorted(wishes, key=lambda wish: _urgency(facts, owners, wish)):
        how: How = "warm up" if left else "wait"
        if copies.holds(wish.target, wish.instance):
            ready = wish.copy == "active" and is_ready(facts, owners, wish.instance, wish.target)
            how = "no room" if ready else "warm up"
        elif left and seats.keep(wish.instance, wish.target):
            left -= 1
            copies.add(copies.warmup, wish.target, wish.instance)
        elif left:
            how = "no room"
        yield facts.movement(wish.instance, facts.id(wish.source), facts.id(wish.target), wish.copy, how)


def _urgency(facts: Facts, owners: Owners, wish: _Wish) -> tuple[bool, bool, Rank, int, int]:
    begun = wish.target in owners.prior.warmup.get(wish.instance, NOBODY)
    return wish.copy != "active", not begun, rank(facts, wish.instance, wish.target), wish.instance, wish.target
