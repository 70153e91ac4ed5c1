"""Whether a submit may go on in a warm application, and leave its own for others."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_dagsched.launch.secrecy.cache_folder import open_private_folder
from airflow_dagsched.launch.warm.about import FOLDER
from airflow_dagsched.launch.warm.terms import Terms, can_stay
from airflow_dagsched.provider.spec.configuration import read_cache_dir, read_warm_idle, read_warm_runs
from airflow_dagsched.provider.warm.offer import Offer

if TYPE_CHECKING:
    from airflow_dagsched.provider.runtime.allocation import Allocation
    from airflow_dagsched.provider.runtime.attempt import Attempt

log = logging.getLogger(__name__)


def make_offer(attempt: Attempt, allocation: Allocation) -> Offer | None:
    """None where the application is to be the submit's own; a cache folder that cannot be had costs time, no run."""
    flow = attempt.flow
    if flow.warm_s <= 0 or attempt.is_per_step or attempt.level.per_step:
        return None
    if not can_stay(allocation.chosen.planned.cluster.manager):
        log.info("warm= does nothing on Kubernetes: executors' pods are made from files of one submit")
        return None
    cache = read_cache_dir()
    try:
        open_private_folder(open_private_folder(cache) / FOLDER)
    except OSError as error:
        log.warning("no warm application: %s", error)
        return None
    task = attempt.context["ti"].task if "ti" in attempt.context else attempt.launch
    return Offer(
        terms=Terms(flow.warm_s, read_warm_runs(), read_warm_idle()),
        cache=cache,
        label=f"{flow.dag_id}.{flow.name}",
        connection=flow.conn_id,
        pool=str(getattr(task, "pool", "")),
        queue=str(getattr(task, "queue", "")),
        roots=attempt.roots,
    )
