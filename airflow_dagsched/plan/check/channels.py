"""A pipelined channel has both ends in one group, or is part of a spill; spills hold nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.check.edges import Dataset
from airflow_dagsched.plan.check.facts import Facts, Violation


def check_channels(facts: Facts) -> Iterator[Violation]:
    """Spills cover exactly the pipelined channels between groups."""
    spilled = _spilled(facts)
    for dataset, readers in facts.edges.pipelined.items():
        wanted, told = set(readers), spilled.pop(dataset, ())
        if len(told) != len(wanted) or wanted != set(told):
            yield from _differing(dataset, wanted, told)
    for dataset, told in spilled.items():
        yield from _differing(dataset, set(), told)
    yield from _known(facts)


def _spilled(facts: Facts) -> dict[Dataset, tuple[str, ...]]:
    """Readers of each spill."""
    found: dict[Dataset, tuple[str, ...]] = {}
    for spill in facts.plan.spills:
        dataset = spill.src, spill.output
        found[dataset] = found[dataset] + spill.dst if dataset in found else spill.dst
    return found


def _differing(dataset: Dataset, wanted: set[str], told: tuple[str, ...]) -> Iterator[Violation]:
    name = "/".join(dataset)
    for reader in sorted(wanted - set(told)):
        yield Violation("completable", name, f"pipelined to {reader!r} in another group, and no spill")
    for reader in sorted(set(told)):
        if reader not in wanted:
            yield Violation("spill", name, f"no pipelined channel to {reader!r} is cut")
        elif told.count(reader) > 1:
            yield Violation("spill", name, f"spilled {told.count(reader)} times for {reader!r}")


def _known(facts: Facts) -> Iterator[Violation]:
    for spill in facts.plan.spills:
        told = facts.size.get((spill.src, spill.output))
        if spill.dst and told == spill.bytes:
            continue
        name = f"{spill.src}/{spill.output}"
        if not spill.dst:
            yield Violation("spill", name, "has no reader")
        if told is None:
            yield Violation("spill", name, "no channel carries this dataset")
        elif spill.bytes != told:
            yield Violation("spill", name, f"has {spill.bytes} bytes, its channels carry {told}")
