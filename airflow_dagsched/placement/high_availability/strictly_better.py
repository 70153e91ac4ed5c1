"""Whether instances that run are better off elsewhere: by the measure of which each of the policy's movements has to
lead to less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.facts import Facts, gather_facts
from airflow_dagsched.placement.high_availability.prior import Prior, read_prior
from airflow_dagsched.placement.high_availability.settings import DEFAULTS, Settings
from airflow_dagsched.placement.high_availability.sticky.measure import is_less
from airflow_dagsched.placement.high_availability.values import Instance, Worker


def is_strictly_better(
    instances: Iterable[Instance],
    workers: Iterable[Worker],
    after: Mapping[str, str],
    before: Mapping[str, str],
    settings: Settings = DEFAULTS,
) -> bool:
    """Whether fewer instances are on workers that are gone; or as many, none, and the policy's measure is less.

    A strict order for the same workers: of places that are each better than the one before none comes twice.

    :param after: instance -> worker, of all instances; so is ``before``.
    """
    known, live = tuple(instances), tuple(workers)
    ids = {worker.id for worker in live}
    gone_after, gone_before = (sum(worker not in ids for worker in held.values()) for held in (after, before))
    if gone_after or gone_before:
        return gone_after < gone_before
    placed = [_place(known, live, held, settings) for held in (after, before)]
    return is_less(placed[0][0], placed[0][1], placed[1][1])


def _place(
    instances: tuple[Instance, ...], workers: tuple[Worker, ...], active: Mapping[str, str], settings: Settings
) -> tuple[Facts, Prior]:
    facts = gather_facts(instances, workers, {}, settings, previous=Assignment(active=dict(active)))
    return facts, read_prior(facts)
