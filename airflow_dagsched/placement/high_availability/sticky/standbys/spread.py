"""Copies of an instance on workers that differ in their tags: another rack, another zone."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airflow_dagsched.placement.high_availability.facts import Facts


def count_shared_tags(facts: Facts, worker: int, others: Collection[int]) -> int:
    """How many of ``others`` have the worker's value, summed over the tags of the settings. Less is better."""
    tags = facts.workers[worker].tags
    # A worker without the tag shares it with nobody.
    keys = [key for key in facts.settings.spread_tags if key in tags]
    return sum(facts.workers[other].tags.get(key) == tags[key] for key in keys for other in others)


def keep_well_spread(facts: Facts, instance: int, active: int, standbys: Sequence[int]) -> list[int]:
    """The standbys without those for which some other worker would share fewer tags."""
    kept = list(standbys)
    for worker in standbys:
        others = {active, *kept} - {worker}
        mine = count_shared_tags(facts, worker, others)
        free = (at for at in facts.allowed[instance] if at not in others)
        # Only where another would be better: with one rack for all workers every standby would go.
        if mine and any(count_shared_tags(facts, at, others) < mine for at in free):
            kept.remove(worker)
    return kept
