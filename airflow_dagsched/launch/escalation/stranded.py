"""An application without executors: waiting for its turn, or for workers that can't come.

::

    planned on w2 ── w2 dies ── submitted ......... no executor for a while: the manager is asked again
                                                    w2 is there, full: others hold it, and will leave: it waits on
                                                    nothing there can ever hold one: stopped, planned anew

What others hold now does not matter, only what a worker has in all. Tokens name slots: a worker that joined in the
slot of a dead one takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.launch.managers.executors import Executors
from airflow_dagsched.launch.managers.standalone.submit import list_offering
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.order import sort_naturally


@dataclass
class Stranded(DagschedError):
    """An application was stopped, since it could never have had an executor again."""

    reason: str

    def __str__(self) -> str:
        return f"{self.reason}: stopped, and planned anew for what is there now"


@dataclass(frozen=True, slots=True)
class Without:
    """Since when an application has had no executor. Seconds of any clock."""

    since_s: float | None = None
    """None: it has one, or does not say."""

    def after(self, executors: int | None, now_s: float) -> Without:
        """The same once the application says how many it has: None where it needs none."""
        # None, too: a step in Python alone needs no executor, so it waits for none.
        if executors != 0:
            return Without()
        return self if self.since_s is not None else Without(now_s)

    def has_lasted(self, seconds: float, now_s: float) -> bool:
        """Whether there has been none for so long."""
        return self.since_s is not None and now_s - self.since_s >= seconds


def explain_stranded(chosen: Chosen, asked: Executors, conf: Mapping[str, str], cluster: Cluster) -> str:
    """Why no worker of ``cluster``, as it is now, can ever hold an executor of the application; empty: one can.

    :param asked: the executors as they were planned. What an author asks for beyond that is no reason to plan anew:
        the next plan would not have it either.
    :param conf: what spark-submit was told.
    """
    if any(_can_hold(worker, asked) for worker in _list_eligible(chosen, asked, conf, cluster)):
        return ""
    gone = sort_naturally(asked.on.keys() - {worker.id for worker in cluster.workers})
    are = "is" if len(gone) == 1 else "are"
    why = f"{', '.join(gone)} {are} gone" if gone else f"{', '.join(sort_naturally(asked.on))} offers less than it did"
    return f"it has no executor, and can't get one: {why} since it was planned"


def _list_eligible(chosen: Chosen, asked: Executors, conf: Mapping[str, str], cluster: Cluster) -> Iterable[Worker]:
    """Where the manager may start one."""
    # Tokens decide, not the plan's names: a worker that joined in the slot of a dead one offers what that one did.
    if cluster.manager == "standalone":
        return list_offering(conf, cluster.workers)
    return (worker for worker in cluster.workers if worker.id in asked.on or not chosen.exact)


def _can_hold(worker: Worker, asked: Executors) -> bool:
    # All it has, not what is free of it: whoever holds the rest will leave.
    return worker.cores >= asked.cores and worker.memory_mb >= asked.memory_mb
