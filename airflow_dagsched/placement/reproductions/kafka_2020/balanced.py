"""The even deal that ranks have no say in, and the moves that lead from the one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from airflow_dagsched.errors import InvalidInput

Placed = list[list[int]]
"""Instances by worker, in the order in which they came there."""

Move = tuple[int, int, int]
"""Instance, from, to."""


def is_uneven(placed: Placed, capacity: Sequence[int], balance_factor: int, source: int, target: int) -> bool:
    """Whether two workers differ by more than the factor, in whole instances per unit of capacity."""
    heavy, light = len(placed[source]) // capacity[source], len(placed[target]) // capacity[target]
    return heavy - light > balance_factor


def deal_balanced(instances: Sequence[int], capacity: Sequence[int], balance_factor: int) -> Placed:
    """Round robin, then the first instance of the heavier of each pair that tips goes over."""
    placed: Placed = [list(instances[at :: len(capacity)]) for at in range(len(capacity))]
    while _balance_pairs(placed, capacity, balance_factor):
        pass
    return placed


def _balance_pairs(placed: Placed, capacity: Sequence[int], balance_factor: int) -> bool:
    moved = False
    for source, target in permutations(range(len(capacity)), 2):
        while is_uneven(placed, capacity, balance_factor, source, target):
            placed[target].append(placed[source].pop(0))
            moved = True
    return moved


def list_moves(now: Placed, target: Placed, most: int) -> list[Move]:
    """The first ``most`` moves from ``now`` to ``target``, by worker. Raises ``InvalidInput`` if instances differ."""
    if sorted(at for members in now for at in members) != sorted(at for members in target for at in members):
        raise InvalidInput("kafka_2020", "balanced", "does not hold the same instances as the constrained assignment")
    to = {instance: worker for worker, members in enumerate(target) for instance in members}
    all_moves = [(instance, worker, to[instance]) for worker, members in enumerate(now) for instance in members]
    return [move for move in all_moves if move[1] != move[2]][:most]
