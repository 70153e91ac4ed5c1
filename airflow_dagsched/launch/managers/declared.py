"""A declared cluster beside the live one: who is alive the manager knows, what it costs its people know.

::

    live        h1, h2 free 4, h4                        declared   w1 on h1, w2 on h2 cost 3, w3 on h3
    together    w1 on h1, w2 on h2 free 4 cost 3         (h3 is gone)
                h4 without cores: not ours to use, but there, and to be kept out
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster, Worker


def merge_live_and_declared(live: Cluster, declared: Cluster) -> Cluster:
    """The declared workers that are alive, by id or by host, with what the manager says is there and free.

    Live ones that are not declared have nothing to offer. A declared cluster of another manager says nothing
    about this one: ``live`` as it is. This machine, as a local cluster, is what its declaration says: nobody
    else counts what is free there.
    """
    if declared.manager != live.manager:
        return live
    if declared.manager == "local":
        return declared
    left, joined = list(live.workers), []
    for worker in declared.workers:
        found = _find_live(worker, left)
        if found is not None:
            left.remove(found)  # of two declared workers on one host each has its own
            joined.append(_join_worker(worker, found))
    return replace(declared, workers=(*joined, *(_offer_nothing(worker) for worker in left)))


def _find_live(declared: Worker, live: Sequence[Worker]) -> Worker | None:
    same_id = (worker for worker in live if worker.id == declared.id)
    same_host = (worker for worker in live if worker.host in (declared.host, declared.id))
    return next(same_id, None) or next(same_host, None)


def _offer_nothing(live: Worker) -> Worker:
    # Kept in the list: whom the plan does not know it can't keep an application away from.
    return replace(live, cores=0, memory_mb=0)


def _join_worker(declared: Worker, live: Worker) -> Worker:
    """Neither more than the manager has, nor more than its people allow."""
    return replace(
        declared,
        cores=min(declared.cores, live.cores),
        memory_mb=min(declared.memory_mb, live.memory_mb),
        disk_mb=declared.disk_mb if live.disk_mb is None else live.disk_mb,
        host=live.host,
        rack=declared.rack or live.rack,
        tags={**live.tags, **declared.tags},
        resources=live.resources,
        free=live.free,
        tokens=live.tokens,
    )
