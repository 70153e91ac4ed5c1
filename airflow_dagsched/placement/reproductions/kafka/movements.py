"""Copies that the target has where their state is not: what takes their place until it is.

target      state          this round                    next round
A: x        A: -   ──>     A: x warming up      ──>      A: x
B: -        B: x           B: x active                   B: -
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.values import RUNNING, Copy, Lag, Movement


class Budget(Struct):
    """Warm-ups that may still be planted: one count for actives and standbys."""

    left: int

    def take_warmup(self) -> bool:
        """Whether there was a warm-up to spare: it is taken then."""
        # Below zero it stays refused: Kafka's counter goes there, too.
        self.left -= 1
        return self.left >= 0


def move_actives(copies: Copies, budget: Budget) -> list[Movement]:
    """Actives to caught-up workers, those with the fewest such workers first. Returns what is on its way."""
    return [_move_active(copies, budget, late) for late in _list_late(copies, copies.active)]


def move_standbys(copies: Copies, budget: Budget) -> list[Movement]:
    """The same for standbys, with what is left of the warm-ups; where no better worker is free, nothing moves."""
    movements = [_move_standby(copies, budget, late) for late in _list_late(copies, copies.standby)]
    return [movement for movement in movements if movement]


class _Late(Struct, frozen=True):
    """A copy the target has on a worker that is behind another."""

    instance: int
    target: int
    caught_up: list[int]
    by_lag: list[int]
    """Workers before the target by lag, then by id: a standby may go to one that is as far behind."""


def _list_late(copies: Copies, held: list[set[int]]) -> list[_Late]:
    targets: dict[int, list[int]] = {}
    for worker, members in enumerate(held):
        for instance in members:
            if not copies.facts.is_caught_up(instance, worker):
                targets.setdefault(instance, []).append(worker)
    late = [copy for instance, workers in targets.items() for copy in _find_late(copies.facts, instance, workers)]
    # Those with the fewest choices first; Kafka's heap leaves further ties open, here ids decide.
    return sorted(late, key=lambda copy: (len(copy.caught_up), copy.instance, copy.target))


def _find_late(facts: Facts, instance: int, targets: list[int]) -> Iterator[_Late]:
    behind = [encode_lag(lag) for lag in facts.list_lags(instance)]
    caught_up = facts.find_caught_up(instance)
    by_lag = sorted(range(len(behind)), key=behind.__getitem__)
    for target in targets:
        # Strictly: equal lags never move.
        if behind[by_lag[0]] < behind[target]:
            yield _Late(instance, target, caught_up, by_lag[: by_lag.index(target)])


def encode_lag(lag: Lag) -> float:
    """Kafka's numbers: -2 running, -3 unknown, which puts unknown first."""
    if lag is None:
        return -3.0  # Kafka's UNKNOWN_OFFSET_SUM: the quirk that sorts unknown before running
    return -2.0 if lag == RUNNING else float(lag)


def _move_active(copies: Copies, budget: Budget, late: _Late) -> Movement:
    ready = [worker for worker in late.caught_up if late.instance in copies.standby[worker]] or late.caught_up
    # Nobody has caught up: the one that is furthest along (KAFKA-13600, Kafka 3.3).
    source = copies.find_least_loaded(ready) if ready else late.by_lag[0]
    # The two change roles: no new copy, so no warm-up.
    swapped = late.instance in copies.standby[source]
    copies.drop_copy(copies.active, late.target, late.instance)
    copies.drop_copy(copies.standby, source, late.instance)
    copies.add_copy(copies.active, source, late.instance)
    planted = swapped or budget.take_warmup()
    if planted:
        copies.add_copy(copies.standby if swapped else copies.warmup, late.target, late.instance)
    return _make_movement(copies.facts, late, source, "active", planted=planted)


def _move_standby(copies: Copies, budget: Budget, late: _Late) -> Movement | None:
    free = [worker for worker in late.caught_up if not copies.holds_copy(worker, late.instance)]
    next_best = [worker for worker in late.by_lag if not copies.holds_copy(worker, late.instance)]
    if not free and not next_best:
        return None
    source = copies.find_least_loaded(free) if free else next_best[0]
    copies.drop_copy(copies.standby, late.target, late.instance)
    copies.add_copy(copies.standby, source, late.instance)
    planted = budget.take_warmup()
    if planted:
        copies.add_copy(copies.warmup, late.target, late.instance)
    return _make_movement(copies.facts, late, source, "standby", planted=planted)


def _make_movement(facts: Facts, late: _Late, source: int, copy: Copy, *, planted: bool) -> Movement:
    return facts.make_movement(
        late.instance, facts.get_id(source), facts.get_id(late.target), copy, "warm up" if planted else "wait"
    )
