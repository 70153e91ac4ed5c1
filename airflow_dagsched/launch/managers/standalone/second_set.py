"""Executors of a second application like one that runs: on other workers, if they fit there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.managers.executors import Executors
from airflow_dagsched.launch.managers.standalone.submit import (
    RESOURCE,
    TOKENS,
    list_offering,
    make_standalone_submission,
)
from airflow_dagsched.model.cluster import Cluster, Worker


def choose_workers(cluster: Cluster, first: Executors, on: Collection[str], conf: Mapping[str, str]) -> Executors:
    """As many executors as the first application has, on what is free. Raises :class:`LaunchRefused`.

    :param on: workers of the first application.
    :param conf: its settings, which may ask for custom resources.
    """
    wanted = {name: value for name, value in conf.items() if name.startswith(RESOURCE) and not name.startswith(TOKENS)}
    offering = list(list_offering(wanted, cluster.workers))
    others = [worker for worker in offering if worker.id not in on]
    found = next(filter(None, (deal_executors(first, each) for each in (others, offering))), None)
    if found is None:
        need = f"{first.count} executors of {first.cores} cores and {first.memory_mb} MiB"
        raise LaunchRefused(
            "a standby", f"no room for its {need}", "the stream runs without: add workers", passing=True
        )
    return Executors(found, first.cores, first.memory_mb, first.settings)


def deal_executors(asked: Executors, workers: Sequence[Worker]) -> dict[str, int] | None:
    """Worker -> executors, one to each in turn, as the Master does it; None: they do not fit."""
    room = {
        worker.id: min(worker.free_cores // asked.cores, worker.free_memory_mb // asked.memory_mb) for worker in workers
    }
    if sum(room.values()) < asked.count:
        return None
    turns = range(max(room.values(), default=0))
    places = [worker for turn in turns for worker, most in room.items() if turn < most][: asked.count]
    return {worker: places.count(worker) for worker in dict.fromkeys(places)}


def list_tokens(asked: Executors, cluster: Cluster) -> dict[str, str]:
    """The settings that keep these executors on their workers, as far as tokens can."""
    conf = make_standalone_submission(asked, cluster, exact=True).conf
    return {name: value for name, value in conf.items() if name.startswith(TOKENS)}
