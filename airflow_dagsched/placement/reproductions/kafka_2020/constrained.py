"""Actives on workers with the best rank, then levelled as far as ranks allow: the assignment of this round."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.placement.reproductions.kafka_2020.balanced import Placed, is_uneven
from airflow_dagsched.placement.reproductions.kafka_2020.ranks import RUNS, Ranking


def assign_constrained(ranking: Ranking, capacity: Sequence[int], balance_factor: int) -> Placed:
    """Instances by worker, in the order in which they came there."""
    placed: Placed = [[] for _ in capacity]
    _keep_running(ranking, placed)
    for ready in (True, False):
        _fill_workers(ranking, placed, ready=ready)
    _balance_workers(ranking, placed, capacity, balance_factor)
    return placed


def _keep_running(ranking: Ranking, placed: Placed) -> None:
    for instance, ranks in ranking.ranks.items():
        running = next((worker for worker in ranking.list_best_first(instance) if ranks[worker] == RUNS), None)
        if running is not None:
            placed[running].append(instance)


def _fill_workers(ranking: Ranking, placed: Placed, *, ready: bool) -> None:
    """Those with caught-up workers first; the rest go to the best rank. Of equals the one with the fewest."""
    taken = {instance for members in placed for instance in members}
    for instance in ranking.ranks:
        among = ranking.list_caught_up(instance) if ready else _list_best(ranking, instance)
        if instance not in taken and among:
            placed[min(among, key=lambda worker: len(placed[worker]))].append(instance)


def _list_best(ranking: Ranking, instance: int) -> list[int]:
    ranks = ranking.ranks[instance]
    least = min(ranks.values())
    return [worker for worker in ranking.list_best_first(instance) if ranks[worker] == least]


def _balance_workers(ranking: Ranking, placed: Placed, capacity: Sequence[int], balance_factor: int) -> None:
    """One pass; an instance with caught-up workers stays among them, any other may go anywhere."""
    for source in range(len(placed)):
        for ready in (False, True):
            # A copy, since instances leave as it is walked; the last to come goes first.
            for instance in reversed(tuple(placed[source])):
                among = ranking.list_caught_up(instance)
                if bool(among) == ready:
                    targets = among or ranking.list_best_first(instance)
                    _move_to_first(placed, capacity, balance_factor, source, instance, targets)


def _move_to_first(
    placed: Placed, capacity: Sequence[int], balance_factor: int, source: int, instance: int, targets: Sequence[int]
) -> None:
    for target in targets:
        if target != source and is_uneven(placed, capacity, balance_factor, source, target):
            placed[source].remove(instance)
            placed[target].append(instance)
            return
