"""What of the targets can be had in this round.

    target has x on B        B caught up:  B takes over, A gives up
    x is active on A         B is not:     A keeps it, B warms up, if a warm-up is to spare

Warm-ups already begun go on, actives come before standbys, shorter lags before longer ones. A standby that is
missing is planted at once: nothing has to wait for it. Until a movement is done its instance keeps the standbys it has.
What is active has room before any standby, a standby before any warm-up; what has no room now waits, or is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY
from airflow_dagsched.placement.high_availability.space import Seats
from airflow_dagsched.placement.high_availability.sticky.owners import Owners, Rank, is_ready, rank_copy
from airflow_dagsched.placement.high_availability.sticky.standbys.failover import rearrange_standbys
from airflow_dagsched.placement.high_availability.sticky.stateless import place_stateless_now
from airflow_dagsched.placement.high_availability.sticky.targets import Targets
from airflow_dagsched.placement.high_availability.values import Copy, How, Movement, Outcome


class _Wish(Struct, frozen=True):
    """A copy the target has on a worker that has not caught up."""

    copy: Copy
    instance: int
    source: int
    target: int


def plan_round(facts: Facts, owners: Owners, targets: Targets, seats: Seats) -> Outcome:
    """The assignment with what is on its way. A follow-up is asked for if a copy is catching up, so can change it;
    where room is limited, also after any other change.

    ``seats`` are those of the owners. Raises ``DoesNotFit``.
    """
    # Seats are taken in this order: what is active, standbys, warm-ups.
    now = _hand_over_ready(facts, owners, targets, seats)
    stateless = place_stateless_now(facts, targets.stateless, seats)
    copies = Copies.of(facts, now | stateless)
    wanted = {
        instance: _choose_standbys(facts, owners, targets, instance, now[instance]) for instance in facts.stateful
    }
    _add_standbys(copies, owners, {instance: workers for instance, (workers, _) in wanted.items()}, seats)
    wishes = [wish for _, wished in wanted.values() for wish in wished]
    movements = tuple(_plant_warmups(copies, owners, _order_wishes(copies, owners, wishes), seats))
    assignment = copies.make_assignment()
    reached = Targets(now, {at: copies.find_standbys(at) for at in facts.stateful}, stateless)
    held = {**seats.active, **seats.copies} if facts.space is not None else {}
    goes_on = any(moving.how == "warm up" for moving in movements) or _may_change_next(
        facts, targets, reached, assignment, seats
    )
    return Outcome(assignment, movements, goes_on, held)


def _may_change_next(facts: Facts, targets: Targets, reached: Targets, assignment: Assignment, seats: Seats) -> bool:
    """Whether the next round changes something though nothing has to catch up.

    What changed may have made room for what had none: where room is limited there is rest only where nothing
    changes any more. Nor is there before standbys are where a failure costs least.
    """
    if facts.space is not None and (reached != targets if facts.previous is None else assignment != facts.previous):
        return True
    if facts.previous is None or assignment == facts.previous:
        return False
    return rearrange_standbys(facts, reached.active, reached.standbys, seats) != reached.standbys


def _hand_over_ready(facts: Facts, owners: Owners, targets: Targets, seats: Seats) -> dict[int, int]:
    """Where each is active from now on: those whose target is ready go there as soon as there is room."""
    now = dict(owners.active)
    going = [
        instance
        for instance, target in targets.active.items()
        if target != now[instance] and is_ready(facts, owners, instance, target)
    ]
    # Again while any goes: the seat it left may be the one that another waits for.
    while gone := [instance for instance in going if _try_hand_over(now, targets, seats, instance)]:
        going = [instance for instance in going if instance not in gone]
    return now


def _try_hand_over(now: dict[int, int], targets: Targets, seats: Seats, instance: int) -> bool:
    target = targets.active[instance]
    if not seats.may_activate(instance, target):
        return False
    seats.move_active(instance, now[instance], target)
    now[instance] = target
    return True


def _choose_standbys(
    facts: Facts, owners: Owners, targets: Targets, instance: int, active: int
) -> tuple[list[int], list[_Wish]]:
    """The workers of its standbys in this round, and what has to catch up for the target's."""
    target, wanted = targets.active[instance], targets.standbys[instance]
    if active == target:
        return _choose_keepers(facts, owners, instance, active, wanted)
    return _choose_kept(owners, instance, active, [*wanted, target]), [_Wish("active", instance, active, target)]


def _choose_keepers(
    facts: Facts, owners: Owners, instance: int, active: int, wanted: Sequence[int]
) -> tuple[list[int], list[_Wish]]:
    """Those that have caught up, are standbys already, or have nobody to hold the place for them."""
    held = [at for at in (*owners.standbys[instance], owners.active[instance]) if at != active]
    spare = sorted((rank_copy(facts, instance, at), at) for at in held if at not in wanted)
    standbys, wishes = [], []
    for worker in wanted:
        late = rank_copy(facts, instance, worker)
        # A copy that is further along keeps the place until the new one has caught up: never a standby less.
        if worker not in held and spare and spare[0][0] < late:
            keeper = spare.pop(0)[1]
            standbys.append(keeper)
            wishes.append(_Wish("standby", instance, keeper, worker))
        else:
            standbys.append(worker)
    return standbys, wishes


def _choose_kept(owners: Owners, instance: int, owner: int, wanted: Sequence[int]) -> list[int]:
    """Standbys, as many as wanted: those there are, then the target's, then the copy that is to take over."""
    before = owners.standbys[instance]
    choice = [at for at in before if at in wanted] + [at for at in before if at not in wanted] + list(wanted)
    # One less: ``wanted`` has the active's target, too.
    return [at for at in dict.fromkeys(choice) if at != owner][: len(wanted) - 1]


def _add_standbys(copies: Copies, owners: Owners, wanted: dict[int, list[int]], seats: Seats) -> None:
    """Those there are before new ones, as long as there is room."""
    pairs = [(instance, worker) for instance, workers in wanted.items() for worker in workers]
    for instance, worker in sorted(pairs, key=lambda pair: pair[1] not in owners.standbys[pair[0]]):
        if seats.add_copy(instance, worker):
            copies.add_copy(copies.standby, worker, instance)


def _plant_warmups(copies: Copies, owners: Owners, wishes: list[_Wish], seats: Seats) -> Iterator[Movement]:
    # One budget for actives and standbys, actives first, as in Kafka.
    facts, remaining = copies.facts, copies.facts.settings.max_warmups
    for wish in wishes:
        how: How = "warm up" if remaining else "wait"
        if copies.holds_copy(wish.target, wish.instance):
            # It is there, as a standby, and catches up as it is: no warm-up is spent on it.
            ready = wish.copy == "active" and is_ready(facts, owners, wish.instance, wish.target)
            how = "no room" if ready else "warm up"
        elif remaining and seats.add_copy(wish.instance, wish.target):
            remaining -= 1
            copies.add_copy(copies.warmup, wish.target, wish.instance)
        elif remaining:
            how = "no room"
        yield facts.make_movement(wish.instance, facts.get_id(wish.source), facts.get_id(wish.target), wish.copy, how)


def _order_wishes(copies: Copies, owners: Owners, wishes: Iterable[_Wish]) -> list[_Wish]:
    """The most urgent first."""
    facts = copies.facts
    # Like instances level in any order. Of others one may level only once another has gone: warmed up before that, it
    # would be for nothing, and given up for another that is as little use.
    alone = set(wishes) if _is_uniform(facts) else set(_find_helpful_alone(copies, wishes))
    return sorted(wishes, key=lambda wish: _rank_urgency(facts, owners, wish, alone=wish in alone))


def _is_uniform(facts: Facts) -> bool:
    return len({facts.get_weight(instance) for instance in facts.stateful}) <= 1


def _find_helpful_alone(copies: Copies, wishes: Iterable[_Wish]) -> Iterator[_Wish]:
    """Those that lower the higher of two loads as all others are now: of actives, or of all copies."""
    facts, workers = copies.facts, range(len(copies.facts.workers))
    active = [sum(map(facts.get_weight, copies.active[at])) for at in workers]
    every = [active[at] + sum(map(facts.get_weight, copies.standby[at])) for at in workers]
    for wish in wishes:
        loads, weight = active if wish.copy == "active" else every, facts.get_weight(wish.instance)
        after = (loads[wish.target] + weight) / facts.capacity[wish.target]
        if after < loads[wish.source] / facts.capacity[wish.source] - TOLERANCE:
            yield wish


def _rank_urgency(facts: Facts, owners: Owners, wish: _Wish, *, alone: bool) -> tuple[bool, bool, bool, Rank, int, int]:
    begun = wish.target in owners.prior.warmup.get(wish.instance, NOBODY)
    rank = rank_copy(facts, wish.instance, wish.target)
    return wish.copy != "active", not begun, not alone, rank, wish.instance, wish.target
