"""Which partitions of a source a step needs: facts (its condition), decision (``Selection``), and the reasons.

Two ways a source gets its partitions: declared with the dataflow (all of them, then chosen from here), or listed
by a lister that was given the condition and never saw the rest (``layout.list_stored``).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from airflow_dagsched.model.dataflow import Partition, Source
from airflow_dagsched.model.partition_order import PartitionKey, rank_partition
from airflow_dagsched.plan.plan_types import Pruned
from airflow_dagsched.plan.pruning.buckets import find_needed_buckets
from airflow_dagsched.plan.pruning.conditions.condition import ALWAYS, Condition, Every, Unknown
from airflow_dagsched.plan.pruning.conditions.matching import match_keys
from airflow_dagsched.plan.pruning.conditions.where import parse_condition
from airflow_dagsched.plan.pruning.layout import Listing, partition_name
from airflow_dagsched.plan.pruning.pruning_input import PruningInput
from airflow_dagsched.plan.reasons.pruning import NoMatch, NotUnderstood, SourceObjection
from airflow_dagsched.plan.report.sentences import say_pruned


class Selection(Struct, frozen=True):
    """What is read of one source and what is not."""

    path: str
    condition: Condition
    needed: tuple[Partition, ...] = ()
    left_out: tuple[str, ...] = ()
    """Their spelled names."""
    objection: SourceObjection | None = None
    """Why nothing was left out, where there was a condition."""
    listed: bool = True
    """Whether it is known what there is."""

    @property
    def is_declared(self) -> bool:
        """Whether a condition said what is needed."""
        return self.listed and self.condition != ALWAYS and self.objection is None

    @property
    def is_empty(self) -> bool:
        """Whether it is known that there is nothing to read: listed, and nothing there that matches."""
        return self.listed and not self.needed

    def list_pruned(self, prefix: str = "") -> Iterator[Pruned]:
        """An entry for each partition left out."""
        reason = say_pruned(NoMatch(str(self.condition))) if self.left_out else ""
        for name in self.left_out:
            yield Pruned(what="partition", id=prefix + name, reason=reason)


def combine_condition(step: str, source: Source, asked: PruningInput) -> Condition:
    """All that is asked of ``source``: by the run or else its author, and by the step's own SQL."""
    # The run's condition replaces the author's: a backfill may read what an ordinary run does not.
    text = asked.where.get(source.path, source.where)
    parts = (parse_condition(text, asked.names) if text else ALWAYS, asked.find_query_condition(step, source.path))
    told = tuple(part for part in parts if part != ALWAYS)
    return told[0] if len(told) == 1 else Every(told)  # ``Every(())`` is true: all is read


def select_listed(source: Source, condition: Condition) -> Selection:
    """The partitions of ``source``, as it lists them, that ``condition`` may be true of."""
    if not source.partitions:
        return Selection(source.path, condition, objection="not listed", listed=False)
    # The order in which partitions are declared must not show in the plan.
    named = sorted(((partition_name(one), one) for one in source.partitions), key=_rank_named)
    partitions = tuple(one for _, one in named)
    if isinstance(condition, Unknown):
        return Selection(source.path, condition, partitions, objection=NotUnderstood(str(condition)))
    kept = match_keys(condition, [partition.key for partition in partitions])
    if not isinstance(kept, tuple):
        # One key that cannot be judged keeps them all: the type of the column is then not what it seems.
        return Selection(source.path, condition, partitions, objection=kept)
    buckets = None if source.buckets is None else find_needed_buckets(condition, source.buckets)
    reads = [keep and _is_in_buckets(partition, buckets) for partition, keep in zip(partitions, kept, strict=True)]
    needed = (partition for partition, read in zip(partitions, reads, strict=True) if read)
    left_out = (name for (name, _), read in zip(named, reads, strict=True) if not read)
    return Selection(source.path, condition, tuple(needed), tuple(left_out))


def _rank_named(named: tuple[str, Partition]) -> tuple[str, int, PartitionKey]:
    name, partition = named
    return name, partition.bytes, rank_partition(partition)


def _is_in_buckets(partition: Partition, buckets: frozenset[int] | None) -> bool:
    return buckets is None or partition.bucket is None or partition.bucket in buckets


def select_found(source: Source, condition: Condition, listing: Listing) -> Selection:
    """The same from what a lister found, which left out folders by the same condition."""
    found = tuple(stored.partition for stored in listing.stored)
    # Nothing matches: listed and empty, which is something else than not listed.
    if not found:
        return Selection(source.path, condition, left_out=listing.left_out, objection=listing.objection)
    if listing.objection is not None:
        return Selection(source.path, condition, found, objection=listing.objection)
    chosen = select_listed(Source(path=source.path, buckets=source.buckets, partitions=found), condition)
    return Selection(source.path, condition, chosen.needed, (*listing.left_out, *chosen.left_out), chosen.objection)
