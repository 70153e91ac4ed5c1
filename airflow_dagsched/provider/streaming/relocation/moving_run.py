"""A run that is to move its stream to other workers: it looks once more, and asks for an epoch of the same code."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.streaming.choose_epoch import find_asked_move
from airflow_dagsched.provider.streaming.relocation.judge_move import Stay
from airflow_dagsched.provider.streaming.relocation.standing import Standing, find_standing

if TYPE_CHECKING:
    from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
    from airflow_dagsched.provider.streaming.launching import Launching

log = logging.getLogger(__name__)


class StaysPut(DagschedError):
    """What was to move stays where it is."""

    def __init__(self, stay: Stay) -> None:
        self.stay = stay

    def __str__(self) -> str:
        return self.stay.reason


def find_moving(launching: Launching) -> Standing | None:
    """The epoch that this run is to move; None: it is to move none, or that is not there to be moved any more."""
    asked = find_asked_move(launching.context, launching.task.spec.flow.name)
    is_ordered = "move" in launching.wishes
    if launching.has_judged or (asked is None and not is_ordered):
        return None
    found = _find_standing(launching)
    if found is None:
        return None
    record = launching.story.epochs[found.epoch].record
    # One that this run has made itself is where it was to go.
    is_mine = record.run_id == launching.run_id or record.fingerprint != launching.stream.fingerprint
    return found if not is_mine and (is_ordered or asked == found.epoch) else None


def _find_standing(launching: Launching) -> Standing | None:
    try:
        return find_standing(launching.look())
    except OSError as error:
        log.warning("where the stream runs is not known, so it stays there: %s", error)
        return None


def judge_again(launching: Launching, chosen: Chosen) -> str:
    """Why it moves, on what is there now. Raises ``StaysPut`` where it is no better off on what was found."""
    standing = find_moving(launching)
    if standing is None:
        raise StaysPut(Stay("handed over"))
    flow = launching.task.spec.flow
    # Of its own: the one that planned counts what leaves as free.
    seen = standing.judge(PlannerHook(flow.conn_id, None).cluster(flow.declared_cluster), chosen)
    if isinstance(seen, Stay):
        raise StaysPut(seen)
    log.info("%s", seen.reason)
    return seen.reason


@contextmanager
def keeping_place(launching: Launching) -> Iterator[None]:
    """Leave the block where what was to move stays: then it is followed as it is."""
    try:
        yield
    except StaysPut as put:
        launching.has_judged = True
        log.info("it stays where it is: %s", put)
