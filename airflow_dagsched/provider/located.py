"""Before a submit: who holds what the steps read, asked for those of their declared tables that are on an HDFS.

What nobody can tell is no reason to go anywhere, and none to fail: a warning says what came instead of an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.launch.live.webhdfs import address_of
from airflow_dagsched.launch.tables import Table
from airflow_dagsched.model.dataflow import Dataflow, Source, Step
from airflow_dagsched.plan.prune.condition import ALWAYS
from airflow_dagsched.plan.prune.layout import list_stored
from airflow_dagsched.plan.prune.where import Names, condition_of

if TYPE_CHECKING:
    from airflow_dagsched.provider.clusters import Reached
    from airflow_dagsched.provider.webhdfs import WebHdfsLister

log = logging.getLogger(__name__)

SCHEME = "hdfs://"


def located(dataflow: Dataflow, reads: Mapping[str, Sequence[Table]], reached: Reached, names: Names) -> Dataflow:
    """The dataflow with sources: the partitions that this run needs of each table of ``reads``, with their blocks.

    :param reads: step -> the tables it declares; those that are not on an HDFS, or can't be listed, become no source.
    :param names: what ``where`` of a table may say of the run.
    """
    with ExitStack() as opened:
        stores = _Stores(reached, opened)
        steps = tuple(_with(step, reads.get(step.id, ()), stores, names) for step in dataflow.steps)
    return replace(dataflow, steps=steps)


def _with(step: Step, tables: Sequence[Table], stores: _Stores, names: Names) -> Step:
    on_hdfs = [table for table in tables if table.location.startswith(SCHEME)]
    if step.sources or not on_hdfs:
        return step
    return replace(step, sources=tuple(_sources(on_hdfs, stores, names)))


def _sources(tables: Sequence[Table], stores: _Stores, names: Names) -> Iterator[Source]:
    for table in tables:
        condition = condition_of(table.where, names) if table.where else ALWAYS
        try:
            lister, path = stores.of(table.location)
            listing = list_stored(lister, path, condition)
        except FileNotFoundError:
            continue  # not there yet
        except ClusterUnknown as error:
            stores.without(table.location, error)
            continue
        partitions = tuple(stored.partition for stored in listing.stored)
        yield Source(path=table.location, where=table.where, partitions=partitions)


class _Stores:
    """A lister for each file system; one that did not answer is not asked again: each time-out takes seconds."""

    def __init__(self, reached: Reached, opened: ExitStack) -> None:
        self._reached = reached
        self._opened = opened
        self._found: dict[str, WebHdfsLister] = {}
        self._silent: dict[str, ClusterUnknown] = {}

    def of(self, location: str) -> tuple[WebHdfsLister, str]:
        """Lister and path; raises :class:`ClusterUnknown`."""
        from airflow_dagsched.provider.webhdfs import WebHdfsLister

        name = _authority(location)
        if name in self._silent:
            raise self._silent[name]
        if name not in self._found:
            self._found[name] = self._opened.enter_context(WebHdfsLister.of(location, self._reached))
        return self._found[name], address_of(location)[1]

    def without(self, location: str, error: ClusterUnknown) -> None:
        """Go on without who holds ``location``; said once a file system."""
        name = _authority(location)
        if name not in self._silent:
            log.warning("no preference for the workers that hold %s: %s", location, error)
        self._silent[name] = error


def _authority(location: str) -> str:
    return location.removeprefix(SCHEME).partition("/")[0]
