"""A pipelined channel has both ends in one group, or is part of a spill; spills hold nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.checking.facts.edges import Dataset
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation


def check_channels(facts: Facts) -> Iterator[Violation]:
    """Spills cover exactly the pipelined channels between groups."""
    spilled = _collect_spilled(facts)
    for dataset, readers in facts.edges.pipelined.items():
        # Taken out: whatever is then left in ``spilled`` covers no cut channel.
        wanted, recorded = set(readers), spilled.pop(dataset, ())
        if len(recorded) != len(wanted) or wanted != set(recorded):
            yield from _compare_readers(dataset, wanted, recorded)
    for dataset, recorded in spilled.items():
        yield from _compare_readers(dataset, set(), recorded)
    yield from _check_known_spills(facts)


def _collect_spilled(facts: Facts) -> dict[Dataset, tuple[str, ...]]:
    """Readers of each spill."""
    readers_of: dict[Dataset, tuple[str, ...]] = {}
    for spill in facts.plan.spills:
        dataset = spill.src, spill.output
        # A dataset may be in several entries: what counts is who reads it in all.
        readers_of[dataset] = readers_of[dataset] + spill.dst if dataset in readers_of else spill.dst
    return readers_of


def _compare_readers(dataset: Dataset, wanted: set[str], recorded: tuple[str, ...]) -> Iterator[Violation]:
    name = "/".join(dataset)
    for reader in sorted(wanted - set(recorded)):
        yield Violation("completable", name, f"pipelined to {reader!r} in another group, and no spill")
    for reader in sorted(set(recorded)):
        if reader not in wanted:
            yield Violation("spill", name, f"no pipelined channel to {reader!r} is cut")
        elif recorded.count(reader) > 1:
            yield Violation("spill", name, f"spilled {recorded.count(reader)} times for {reader!r}")


def _check_known_spills(facts: Facts) -> Iterator[Violation]:
    for spill in facts.plan.spills:
        recorded = facts.dataset_bytes.get((spill.src, spill.output))
        if spill.dst and recorded == spill.bytes:
            continue
        name = f"{spill.src}/{spill.output}"
        if not spill.dst:
            yield Violation("spill", name, "has no reader")
        if recorded is None:
            yield Violation("spill", name, "no channel carries this dataset")
        elif spill.bytes != recorded:
            yield Violation("spill", name, f"has {spill.bytes} bytes, its channels carry {recorded}")
