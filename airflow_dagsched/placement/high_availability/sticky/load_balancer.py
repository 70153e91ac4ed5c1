"""Fewest moves from what is to a level load: from the heaviest worker to the one that is lightest with one more.

A move is made if it lowers the higher of two loads by more than the balance factor lets pass::

    (load of target + balance_factor x weight) / capacity  <  load of source / capacity

so every move lowers the sorted loads and the search ends. Where a move costs more than it is worth, ``slack`` and
``spare`` ask for a larger difference. Two passes: first instances that already have a copy where they would go, as far
as the even loads (found by the same search on mean weights) ask for a move at all; then any. Of the instances of a
worker those of the group go first of which it has most more than the target: a group is what should not be in one
place, the actives of a step, or the standbys of one worker's actives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final

from airflow_dagsched.model.units import TOLERANCE
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.space import Seats

Group = str | int

Way = tuple[int, int, int]
"""Instance, from, to."""

Allowed = Callable[[int, int, int, set[int]], bool]
"""Whether an instance may go that way, given all workers that have a copy of it."""


OnMove = Callable[[int, int, int], None]
"""Told of each move."""

Gain = Callable[[int, int, int], float]
"""What is gained beside a level load if an instance goes that way."""

MAX_CANDIDATES: Final = 50
"""Instances that would level the load alike and are compared: the one with the most gain goes."""


def balance_actives(facts: Facts, loads: Sequence[float], seats: Seats) -> LoadBalancer:
    """A balancer of active instances, which go where they have room."""
    return LoadBalancer(
        facts, loads, lambda instance, source, target, held: seats.may_activate(instance, target), seats.move_active
    )


class LoadBalancer:
    """Loads of the workers, and what can be moved from each; all other load is only counted."""

    def __init__(self, facts: Facts, loads: Sequence[float], allowed: Allowed, on_move: OnMove) -> None:
        self.facts = facts
        self.allowed = allowed
        self.on_move = on_move
        self.capacity = facts.capacity
        self.loads = list(loads)
        self.relative = [load / capacity for load, capacity in zip(loads, self.capacity, strict=True)]
        # Dicts as ordered sets: the order in which copies came decides ties, the same in every process.
        self.movable: list[dict[Group, dict[int, None]]] = [{} for _ in loads]
        """Instances by worker, then group; in the order in which they came there."""
        self.groups: dict[int, Group] = {}
        self.holders: dict[int, set[int]] = {}
        """Workers by instance: it never goes where it has a copy already."""
        self.begun: set[Way] = set()
        """Moves on the way already: of instances that would do as well, these go first."""
        self.most = [0] * len(self.loads)
        """No less than the size of the largest group that each worker holds."""
        # One weight, and the largest group decides at once: see ``_pick_instance``.
        weights = {instance.weight for instance in facts.instances}
        self.is_uniform = len(weights) == 1
        self.least = facts.settings.balance_factor * min(weights, default=0.0)
        self.slack = [0.0] * len(self.loads)
        """Load that each worker lacks at least wherever a move to it is worth a hand-over."""
        self.spare = [0.0] * len(self.loads)
        """Load that each worker may lack besides, or that who would give to it may have too much."""
        self.after = [0.0] * len(self.loads)
        """The least relative load a worker can have after a move to it: if none is less than another's, none helps."""
        self.gain: Gain | None = None
        self.moved: list[Way] = []

    def fix_copy(self, instance: int, worker: int) -> None:
        """A copy that stays where it is."""
        self.holders.setdefault(instance, set()).add(worker)

    def hold_copy(self, instance: int, worker: int, group: Group) -> None:
        """A copy that may be moved; its load is counted already. All copies of an instance are of one group."""
        self.fix_copy(instance, worker)
        self.groups[instance] = group
        held = self.movable[worker].setdefault(group, {})
        held[instance] = None
        self.most[worker] = max(self.most[worker], len(held))

    def balance_loads(self, ways: Sequence[Way] = (), started: Iterable[Way] = ()) -> list[Way]:
        """All moves, in order. ``ways`` lead to existing copies, the best first; ``started`` to those on the way."""
        self.begun = set(started)
        self.after = [self._compute_after(worker, self.least) for worker in range(len(self.loads))]
        givers, takers = self._order_workers(self.begun)
        if not self.is_uniform:
            self._go_on()
        if ways:
            self._move_to_holders(ways, self._compute_even_loads(givers, takers))
        while self._run_pass(list(givers), takers):
            pass
        return self.moved

    def _go_on(self) -> None:
        """Make the moves on the way that help as things are, and leave these instances where they are then.

        Of like instances any does as well, and the search finds these first. Of others it would fill their targets
        with what is heavier, and what has been warmed up would be for nothing.
        """
        for instance, source, target in sorted(self.begun):
            if self._is_held(instance, source) and self._is_helpful(instance, source, target):
                self._move_copy(instance, source, target)
                self._fix_in_place(instance, target)

    def _run_pass(self, givers: list[int], takers: Sequence[int]) -> bool:
        """Whether anything moved after some worker had nothing to give: then it may have now."""
        stuck = False
        moved_since = False
        while givers:
            source = max(givers, key=self.relative.__getitem__)
            # The heaviest has nothing for the lightest: nobody has for anybody.
            if self.relative[source] - TOLERANCE <= min(self.after):
                break
            if self._give_one(source, takers):
                moved_since = stuck
            else:
                # What it has cannot go anywhere as things are; once others have moved it is asked again.
                givers.remove(source)
                stuck = True
        return moved_since

    def _order_workers(self, begun: Collection[Way]) -> tuple[list[int], list[int]]:
        """Workers by how much is on the way from, and to, them: of equal ones the first gives, or takes."""
        leaving, arriving = Counter(way[1] for way in begun), Counter(way[2] for way in begun)
        workers = range(len(self.loads))
        return sorted(workers, key=lambda at: (-leaving[at], at)), sorted(workers, key=lambda at: (-arriving[at], at))

    def _compute_even_loads(self, givers: Sequence[int], takers: Sequence[int]) -> list[float]:
        """Relative loads at the end if all that can be moved had the mean weight."""
        movable_counts = [sum(map(len, groups.values())) for groups in self.movable]
        weight = sum(self.facts.get_weight(at) for groups in self.movable for held in groups.values() for at in held)
        mean, factor = weight / max(1, sum(movable_counts)), self.facts.settings.balance_factor
        loads, relative = list(self.loads), list(self.relative)
        lacks = [max(factor * mean, slack) + spare for slack, spare in zip(self.slack, self.spare, strict=True)]
        after = [(load + lack) / capacity for load, lack, capacity in zip(loads, lacks, self.capacity, strict=True)]
        open_givers = [at for at in givers if movable_counts[at]]
        while open_givers:
            source = max(open_givers, key=relative.__getitem__)
            target = min(takers, key=after.__getitem__)
            if after[target] >= relative[source] - TOLERANCE:
                break
            for worker, change in ((source, -mean), (target, mean)):
                loads[worker] += change
                relative[worker] = loads[worker] / self.capacity[worker]
                after[worker] = (loads[worker] + lacks[worker]) / self.capacity[worker]
            movable_counts[source] -= 1
            if not movable_counts[source]:
                open_givers.remove(source)
        return relative

    def _move_to_holders(self, ways: Sequence[Way], even: Sequence[float]) -> None:
        for instance, source, target in ways:
            weight = self.facts.get_weight(instance)
            after = self.relative[source] - weight / self.capacity[source]
            there = self.relative[target] + weight / self.capacity[target]
            asked_for = after >= even[source] - TOLERANCE and there <= even[target] + TOLERANCE
            # The even loads ask for the move already; with slack it has to be worth a hand-over besides.
            fits = self._is_helpful if self.slack[target] else self._may_go
            if asked_for and self._is_held(instance, source) and fits(instance, source, target):
                self._move_copy(instance, source, target)

    def _give_one(self, source: int, takers: Sequence[int]) -> bool:
        """One move away from ``source``, to the lightest worker that may take something from it."""
        targets = iter((min(takers, key=self.after.__getitem__),))
        for target in chain(targets, self._iterate_takers(source, takers)):
            instance = self._pick_instance(source, target)
            if instance is not None:
                self._move_copy(instance, source, target)
                return True
        return False

    def _iterate_takers(self, source: int, takers: Sequence[int]) -> Iterator[int]:
        """Sorted only if it is asked for: mostly the lightest will do."""
        for target in sorted(takers, key=self.after.__getitem__):
            if self.after[target] < self.relative[source]:
                yield target

    def _pick_instance(self, source: int, target: int) -> int | None:
        """The weight that comes closest to making the two even, then the group most in excess, then the first."""
        # A warm-up under way is half of the price: another instance would pay it anew.
        goes_on = [at for at, begun_at, to in sorted(self.begun) if (begun_at, to) == (source, target)]
        for instance in goes_on:
            if self._is_held(instance, source) and self._is_helpful(instance, source, target):
                return instance
        best, best_key = None, (0.0, 0)
        even, there = self._compute_gap(source, target), self.movable[target]
        for group, held in self.movable[source].items():
            excess = len(held) - len(there.get(group, ()))
            key = (-abs(even - self.facts.get_weight(next(iter(held)))), excess)
            if best is None or key > best_key:
                chosen = self._pick_best(held, source, target)
                if chosen is not None:
                    best, best_key = chosen, key
                    if self.is_uniform and excess == self.most[source]:
                        return best  # none is better
        self.most[source] = max(map(len, self.movable[source].values()), default=0)
        return best

    def _pick_best(self, held: Iterable[int], source: int, target: int) -> int | None:
        # A budget in instances, not seconds: those beyond it are still taken, in their order, if none of these may go.
        candidates = iter(held)
        if (gain := self.gain) is not None:
            best = sorted(islice(candidates, MAX_CANDIDATES), key=lambda at: -gain(at, source, target))
            candidates = chain(best, candidates)
        return next((at for at in candidates if self._is_helpful(at, source, target)), None)

    def _compute_gap(self, source: int, target: int) -> float:
        """The weight that would make both loads equal."""
        mine, other = self.capacity[source], self.capacity[target]
        return (self.loads[source] * other - self.loads[target] * mine) / (mine + other)

    def _is_helpful(self, instance: int, source: int, target: int) -> bool:
        after = self._compute_after(target, self.facts.settings.balance_factor * self.facts.get_weight(instance))
        narrow = max(0.0, self.spare[target] / self.capacity[source] - self.spare[target] / self.capacity[target])
        return after + narrow < self.relative[source] - TOLERANCE and self._may_go(instance, source, target)

    def _compute_after(self, target: int, lack: float) -> float:
        """What a worker's relative load is not to reach: less than a source has, if that is to give it something."""
        return (self.loads[target] + max(lack, self.slack[target]) + self.spare[target]) / self.capacity[target]

    def _may_go(self, instance: int, source: int, target: int) -> bool:
        holders = self.holders[instance]
        if target in holders or target not in self.facts.allowed[instance]:
            return False
        return self.allowed(instance, source, target, holders)

    def _move_copy(self, instance: int, source: int, target: int) -> None:
        group, weight = self.groups[instance], self.facts.get_weight(instance)
        self._fix_in_place(instance, source)
        self.holders[instance].remove(source)
        self.hold_copy(instance, target, group)
        # Loads of two workers only: what the search looks at is kept, never summed anew.
        for worker, change in ((source, -weight), (target, weight)):
            self.loads[worker] += change
            self.relative[worker] = self.loads[worker] / self.capacity[worker]
            self.after[worker] = self._compute_after(worker, self.least)
        self.moved.append((instance, source, target))
        self.on_move(instance, source, target)

    def _fix_in_place(self, instance: int, worker: int) -> None:
        """It can be moved from there no more."""
        group = self.groups[instance]
        del self.movable[worker][group][instance]
        if not self.movable[worker][group]:
            del self.movable[worker][group]

    def _is_held(self, instance: int, worker: int) -> bool:
        return instance in self.movable[worker].get(self.groups.get(instance, ""), ())
