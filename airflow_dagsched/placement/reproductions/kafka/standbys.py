"""Standbys of trunk: to the least loaded workers, or spread over tags (KIP-708)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.reproductions.kafka.target import MayMove, allow_any


def deal_standbys(copies: Copies, order: Sequence[int] | None = None) -> dict[int, int]:
    """Give each stateful instance its standbys; returns how many found no worker, by instance.

    ``order`` is that of the instances, natural by default: the first ones choose first.
    """
    deal_one = _deal_spread if copies.facts.settings.spread_tags else _deal_least_loaded
    wanted = copies.facts.settings.num_standbys
    missing = {}
    for instance in copies.facts.stateful if order is None else order:
        missing[instance] = wanted - deal_one(copies, instance, wanted)
    # Kafka walks a hash map here: what the tags left over goes by load alone, in natural order.
    for instance, count in sorted(missing.items()):
        missing[instance] = count - _deal_least_loaded(copies, instance, count)
    return missing


def _deal_least_loaded(copies: Copies, instance: int, wanted: int) -> int:
    """Giving a worker its copy rules it out and changes no other load, so all are chosen at once."""
    free = copies.find_free(instance) if wanted else []
    if wanted == 1 and free:
        chosen = [copies.find_least_loaded(free)]
    else:
        chosen = sorted(free, key=copies.loads.__getitem__)[:wanted]
    for worker in chosen:
        copies.add_copy(copies.standby, worker, instance)
    return len(chosen)


def _deal_spread(copies: Copies, instance: int, wanted: int) -> int:
    """Walk from copy to copy, each time away from the tags of the last; a tag all of whose values are used is free."""
    facts = copies.facts
    values = _list_tag_values(facts)
    banned: dict[str, set[str]] = {key: set() for key in facts.settings.spread_tags}
    # ClientTagAwareStandbyTaskAssignor begins with the active's worker: its tags are used first.
    last = next(iter(copies.find_holders(instance)), None)
    for placed in range(wanted):
        if last is not None:
            _ban_tags(facts, last, banned, values, used=placed + 1)
        last = _find_least_loaded(copies, instance, banned)
        if last is None:
            return placed
        copies.add_copy(copies.standby, last, instance)
    return wanted


def _list_tag_values(facts: Facts) -> dict[str, set[str]]:
    return {
        key: {worker.tags[key] for worker in facts.workers if key in worker.tags} for key in facts.settings.spread_tags
    }


def _ban_tags(facts: Facts, last: int, banned: dict[str, set[str]], values: dict[str, set[str]], used: int) -> None:
    for key, value in facts.workers[last].tags.items():
        if key in banned:
            # Every value of the tag is in use: it cannot tell workers apart any more.
            if len(values[key]) <= used:
                banned[key].clear()
            else:
                banned[key].add(value)


def _find_least_loaded(copies: Copies, instance: int, banned: dict[str, set[str]]) -> int | None:
    best, least = None, math.inf
    for worker, load in enumerate(copies.loads):
        if load < least and not copies.holds_copy(worker, instance):
            tags = copies.facts.workers[worker].tags
            if not any(tags.get(key) in taken for key, taken in banned.items()):
                best, least = worker, load
    return best


def make_swap_rule(facts: Facts) -> MayMove:
    """Standbys spread over tags go only to a worker whose tags are all the same."""
    if not facts.settings.spread_tags:
        return allow_any
    return lambda source, target: is_tagged_alike(facts, source, target)


def is_tagged_alike(facts: Facts, source: int, target: int) -> bool:
    """All tags count, not only those of the settings."""
    return facts.workers[source].tags == facts.workers[target].tags
