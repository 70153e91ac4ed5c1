"""What groups write for each other, and read: each dataset once a group, however many of its steps take part.

{a b} ══ d 300 MB ══> {c}, {e f}      a b write 300 MB once; c reads 300 MB, e f another 300 MB, once for both
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from airflow_dagsched.model.graph import Dataset
from airflow_dagsched.plan.costing.capacity import InFlightSpill
from airflow_dagsched.plan.problem.problem import Problem


class Traffic(NamedTuple):
    """Bytes that each group reads from earlier ones and writes for later ones, by its first node."""

    read: Sequence[int]
    written: Sequence[int]
    in_flight: Sequence[InFlightSpill]
    """The pipelined datasets that are cut, where there is a limit to them."""
    spilled_bytes: int
    """Of all of them."""


def measure_traffic(group_of: Sequence[int], problem: Problem) -> Traffic:
    """What goes from group to group, and from what was there before to groups."""
    read, written = [0] * len(group_of), [0] * len(group_of)
    in_flight, spilled_bytes = list[InFlightSpill](), 0
    idle_steps, limited = problem.exclusions.idle_steps, problem.cluster.spill_mb is not None
    for dataset in problem.graph.datasets:
        here, size = group_of[dataset.src], dataset.bytes
        others = {group_of[reader] for reader in dataset.readers}
        others.discard(here)
        # A step that is not run writes nothing; whoever reads of it finds the dataset empty.
        if not others or dataset.src in idle_steps:
            continue
        written[here] += size
        for other in _select_reading(others, dataset, group_of, idle_steps):
            read[other] += size
        # What buffered readers read is stored in any case, by the author's word: only cut pipelined channels are
        # spills.
        whole = len(dataset.pipelined) == len(dataset.readers)
        spilled = others if whole else {group_of[reader] for reader in dataset.pipelined} - {here}
        if spilled:
            spilled_bytes += size
            if limited:
                in_flight.append(InFlightSpill(here, tuple(spilled), size))
    # What is there from before is read once a group, too; nobody writes it.
    for stored in problem.stored:
        for other in {group_of[reader] for reader in stored.readers}:
            read[other] += stored.bytes
    return Traffic(read, written, in_flight, spilled_bytes)


def list_stored_spills(group_of: Sequence[int], problem: Problem) -> list[InFlightSpill]:
    """The spills that are there from before: they take room until their last reader has ended."""
    return [
        InFlightSpill(None, tuple({group_of[node] for node in stored.kept_for}), stored.bytes)
        for stored in problem.stored
        if stored.kept_for
    ]


def _select_reading(
    others: set[int], dataset: Dataset, group_of: Sequence[int], idle_steps: Collection[int]
) -> set[int]:
    """Those of the groups ``others`` of which a step that is run reads the dataset."""
    if not idle_steps:
        return others
    return others.intersection([group_of[reader] for reader in dataset.readers if reader not in idle_steps])
