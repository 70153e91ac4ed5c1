"""Who holds what earlier applications of this run have written and a submit reads: the blocks, where an HDFS says so.

    launch_a   clean ──writes──> hdfs://lake/clean       its commit record: folder day=2013-01-02
    launch_b           ──reads──> total                  WebHDFS: the blocks there are on w2, so rather on w2

Rows that come over a channel from another application are a source to this one, under the name of their dataset.
Unknown is no preference; whatever cannot be asked is warned of, and costs time, never rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.protocol.wire import parse_dataclass
from airflow_dagsched.launch.retention.records import Written
from airflow_dagsched.model.dataflow import Partition, Source
from airflow_dagsched.plan.pruning import list_stored
from airflow_dagsched.plan.pruning.layout import parse_partition_name
from airflow_dagsched.plan.pruning.steps import name_dataset
from airflow_dagsched.provider.clusters.folder_listing import HDFS, Open, resolve_location
from airflow_dagsched.provider.spec.work_dir import parse_local_root
from airflow_dagsched.provider.submission.specs import Submit

log = logging.getLogger(__name__)


def locate_stored(submit: Submit, master: Callable[[], str], listing: Open) -> dict[str, Source]:
    """Dataset, as ``step/output`` -> where its blocks are; without those of which it is not known.

    :param master: Spark's, asked for only where a path does not say its file system.
    :param listing: opens what lists a location.
    """
    read = dict.fromkeys(output for name in submit.targets for output in submit.flow.graph.inputs[name])
    found = {}
    for output in (one for one in read if one.step in submit.states and one.step not in submit.targets):
        name = name_dataset(output.step, output.name)
        partitions = tuple(_locate_partitions(submit, name, _list_places(submit, output), master, listing))
        if any(block.hosts for one in partitions for block in one.blocks):
            found[name] = Source(path=name, partitions=partitions)
    return found


def _list_places(submit: Submit, output: Output) -> Iterator[tuple[str, str]]:
    """Location and folder in it of all that was committed of an output."""
    dataset = submit.datasets.get(name_dataset(output.step, output.name))
    if dataset is not None:
        yield dataset, ""
        return
    table = submit.flow.steps[output.step].declared.writes
    if table is not None and table.is_path and not output.name:
        for folder in _read_written_folders(submit, table):
            yield table.location, folder


def _read_written_folders(submit: Submit, table: Table) -> tuple[str, ...]:
    """The folders that the newest commit of this interval wrote; all of the table, where its record doesn't say."""
    root = parse_local_root(submit.flow.work_dir)
    records = root.glob(f"commits/{escape_key(table.key)}/{escape_key(submit.facts.interval.key)}/*.json")
    try:
        written = parse_dataclass(Written, max(records).read_text("utf-8"))
    except (OSError, ValueError):  # no record, or none that is a text
        return ("",)
    return ("",) if written is None else written.partitions or ("",)


def _locate_partitions(
    submit: Submit, name: str, places: Iterator[tuple[str, str]], master: Callable[[], str], listing: Open
) -> Iterator[Partition]:
    for location, folder in places:
        try:
            url = resolve_location(location, submit.flow.conf, master)
            if not url.startswith(HDFS):  # nobody else says who holds what
                return
            with listing(url) as (lister, root):
                stored = list_stored(lister, f"{root.rstrip('/')}/{folder}").stored
        except (ClusterUnknown, OSError, ValueError) as error:
            level = logging.WARNING if isinstance(error, ClusterUnknown) else logging.INFO  # the rest may be as it is
            log.log(level, "no preference for the workers that hold %s: %s", name, error)
            return
        key = parse_partition_name(folder).key
        yield from (replace(one.partition, key={**key, **one.partition.key}) for one in stored)
