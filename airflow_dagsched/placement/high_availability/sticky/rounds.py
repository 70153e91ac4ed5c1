"""What of the targets can be had in this round.

    target has x on B        B caught up:  B takes over, A gives up
    x is active on A         B is not:     A keeps it, B warms up, if a warm-up is to spare

Warm-ups already begun go on, actives come before standbys, shorter lags before longer ones. A standby that is
missing is planted at once: nothing has to wait for it. Until a movement is done its instance keeps the standbys it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import NOBODY
from airflow_dagsched.placement.high_availability.sticky.owners import Owners, Rank, is_ready, rank
from airflow_dagsched.placement.high_availability.sticky.targets import Targets
from airflow_dagsched.placement.high_availability.values import Copy, How, Movement, Outcome


@dataclass(frozen=True, slots=True)
class _Wish:
    """A copy the target has on a worker that has not caught up."""

    copy: Copy
    instance: int
    source: int
    target: int


def this_round(facts: Facts, owners: Owners, targets: Targets, stateless: dict[int, int]) -> Outcome:
    """The assignment with what is on its way. A follow-up is asked for if a copy is catching up, so can change it."""
    copies = Copies(facts)
    for instance, worker in stateless.items():
        copies.add(copies.active, worker, instance)
    wishes = [wish for instance in facts.stateful for wish in _place(copies, owners, targets, instance)]
    movements = tuple(_plant(copies, owners, wishes))
    return Outcome(copies.assignment(), movements, any(movement.how == "warm up" for movement in movements))


def _place(copies: Copies, owners: Owners, targets: Targets, instance: int) -> list[_Wish]:
    owner, target = owners.active[instance], targets.active[instance]
    standbys = targets.standbys[instance]
    if owner == target or is_ready(copies.facts, owners, instance, target):
        copies.add(copies.active, target, instance)
        return _place_standbys(copies, owners, instance, target, standbys)
    copies.add(copies.active, owner, instance)
    _keep_standbys(copies, owners, instance, owner, [*standbys, target])
    return [_Wish("active", instance, owner, target)]


def _place_standbys(copies: Copies, owners: Owners, instance: int, active: int, wanted: Sequence[int]) -> list[_Wish]:
    """Those that have caught up, are standbys already, or have nobody to hold the place for them."""
    facts = copies.facts
    held = [at for at in (*owners.standbys[instance], owners.active[instance]) if at != active]
    spare = sorted((rank(facts, instance, at), at) for at in held if at not in wanted)
    wishes = []
    for worker in wanted:
        late = rank(facts, instance, worker)
        if worker not in held and spare and spare[0][0] < late:
            keeper = spare.pop(0)[1]
            copies.add(copies.standby, keeper, instance)
            wishes.append(_Wish("standby", instance, keeper, worker))
        else:
            copies.add(copies.standby, worker, instance)
    return wishes


def _keep_standbys(copies: Copies, owners: Owners, instance: int, owner: int, wanted: Sequence[int]) -> None:
    """As many as wanted: those there are, then those of the target, then the copy that is to take over."""
    before = owners.standbys[instance]
    choice = [at for at in before if at in wanted] + [at for at in before if at not in wanted] + list(wanted)
    for worker in [at for at in dict.fromkeys(choice) if at != owner][: len(wanted) - 1]:
        copies.add(copies.standby, worker, instance)


def _plant(copies: Copies, owners: Owners, wishes: list[_Wish]) -> Iterator[Movement]:
    facts, left = copies.facts, copies.facts.settings.max_warmups
    for wish in sorted(wishes, key=lambda wish: _urgency(facts, owners, wish)):
        planted = copies.holds(wish.target, wish.instance)
        if not planted and left:
            left -= 1
            planted = True
            copies.add(copies.warmup, wish.target, wish.instance)
        how: How = "warm up" if planted else "wait"
        yield facts.movement(wish.instance, facts.id(wish.source), facts.id(wish.target), wish.copy, how)


def _urgency(facts: Facts, owners: Owners, wish: _Wish) -> tuple[bool, bool, Rank, int, int]:
    begun = wish.target in owners.prior.warmup.get(wish.instance, NOBODY)
    return wish.copy != "active", not begun, rank(facts, wish.instance, wish.target), wish.instance, wish.target
