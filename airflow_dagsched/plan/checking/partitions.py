"""The partitions that a group reads are ones of its steps' sources, as far as these list them; each once, or left out.

Keys are folders as Spark names them, ``day=2013-01-15/kind=a%3Ab``; where a step has several sources, behind the path
of the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from airflow_dagsched.model.dataflow import Partition, Scalar, Step
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.plan_types import Group

BUCKET = "bucket "
Parts = frozenset[str]
"""Each column with its value, and the bucket, nothing escaped."""


def check_partitions(facts: Facts, group: Group) -> Iterator[Violation]:
    """Sources whose partitions are not listed may have any."""
    pruned = [entry.id for entry in group.pruned if entry.what == "partition"]
    for name, keys in sorted(group.partitions.items()):
        step = facts.steps.get(name) if name in group.steps else None
        if step is None or not step.sources:
            yield Violation("pruned", name, f"reads partitions in {group.id!r}, which has no such step with a source")
        elif all(source.partitions for source in step.sources):
            yield from _check_known(step, keys)
            # With several sources names of partitions alone do not tell whose they are: then they are not counted.
            if len({source.path for source in step.sources}) == 1:
                yield from _check_count(step, len(keys) + sum(entry.startswith(f"{name}/") for entry in pruned))


def _check_count(step: Step, recorded: int) -> Iterator[Violation]:
    listed = max(len(source.partitions) for source in step.sources)
    if recorded != listed:
        yield Violation("pruned", step.id, f"has {listed} partitions, of which {recorded} are read or left out")


def _check_known(step: Step, keys: tuple[str, ...]) -> Iterator[Violation]:
    several = len({source.path for source in step.sources}) > 1
    listed = {
        (source.path if several else "", _split_partition(entry))
        for source in step.sources
        for entry in source.partitions
    }
    # Spark spells dates, flags and fractions in its own way: what is not plain cannot be compared as text.
    if not all(
        _is_plain(value) for source in step.sources for entry in source.partitions for value in entry.key.values()
    ):
        return
    paths = [source.path for source in step.sources] if several else [""]
    for key in keys:
        # One path may begin with another: any split that is listed will do.
        parts = {(path, _split_key(key.removeprefix(f"{path}/"))) for path in paths if key.startswith(path)}
        if not parts & listed:
            yield Violation("pruned", step.id, f"reads partition {key}, which no source of it lists")


def _is_plain(value: Scalar) -> bool:
    """Whether it is spelled as it is: no number with a fraction, no flag, nothing empty."""
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _split_partition(entry: Partition) -> Parts:
    bucket = () if entry.bucket is None else (f"{BUCKET}{entry.bucket}",)
    return frozenset((*(f"{column}={value}" for column, value in entry.key.items()), *bucket))


def _split_key(key: str) -> Parts:
    # A set: the order of columns in a folder's name is the writer's.
    return frozenset(map(unquote, key.split("/"))) if key else frozenset()
