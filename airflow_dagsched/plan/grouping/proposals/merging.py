"""A grouping under construction: groups that are merged two at a time, with what each holds and takes.

Guarantee. Two groups are merged only if no other path joins them and the rules allow it, so the groups stay
acyclic with the ordinary tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.problem.partition import find_edges_between

VISITED = 300
"""Groups looked at for another path between two; where there are more they are not merged."""


class Bundle(Struct, frozen=True):
    """One group: its steps in the order in which they start, datasets by number, cores held for seconds."""

    members: tuple[int, ...]
    reads: frozenset[int]
    writes: frozenset[int]
    """Datasets that other groups read."""
    cores: int
    seconds: float

    @property
    def held(self) -> float:
        """Core-seconds."""
        return self.cores * self.seconds


class Merging:
    """The groups so far and the edges between them and the ordinary tasks; groups by their first node."""

    def __init__(self, group_of: Sequence[int], evaluator: Evaluator) -> None:
        self.problem = evaluator.problem
        self._evaluator = evaluator
        self.group_of = list(group_of)
        self._place = [0] * len(group_of)
        for at, node in enumerate(evaluator.start_order):
            self._place[node] = at
        edges = find_edges_between(self.problem.graph, group_of)
        self.nexts: dict[int, set[int]] = {node: set(edges[node]) for node in set(group_of)}
        self.above: dict[int, set[int]] = {node: set() for node in self.nexts}
        for node, afters in self.nexts.items():
            for after in afters:
                self.above[after].add(node)
        self.bundles = self._make_bundles()

    def describe_merge(self, one: int, other: int) -> Bundle | None:
        """What ``one`` and ``other``, which waits for it, would be together; None where that may not or cannot be."""
        if not self._may_merge(one, other) or self._has_detour(one, other):
            return None
        first, second = self.bundles[one], self.bundles[other]
        # In the order in which the evaluator starts steps: its sizes are looked up by that list.
        members = sorted(first.members + second.members, key=self._place.__getitem__)
        inner = {one, other}
        datasets, group_of = self.problem.graph.datasets, self.group_of
        # What the one wrote for the other is handed over in memory once they are one.
        reads = frozenset(at for at in first.reads | second.reads if group_of[datasets[at].src] not in inner)
        writes = frozenset(
            at
            for at in first.writes | second.writes
            if any(group_of[reader] not in inner for reader in datasets[at].readers)
        )
        try:
            return self._make_bundle(tuple(members), reads, writes)
        except DoesNotFit:
            return None

    def merge_bundles(self, one: int, other: int, bundle: Bundle) -> int:
        """Make them one group; returns its first node."""
        kept, gone = min(one, other), max(one, other)
        for node in self.bundles.pop(gone).members:
            self.group_of[node] = kept
        self.bundles[kept] = bundle
        # Both directions alike: the edges of the one that goes are given to the one that stays.
        for edges, backs in ((self.nexts, self.above), (self.above, self.nexts)):
            for node in edges.pop(gone):
                backs[node].discard(gone)
                if node != kept:
                    edges[kept].add(node)
                    backs[node].add(kept)
        return kept

    def _make_bundles(self) -> dict[int, Bundle]:
        members: dict[int, list[int]] = {}
        for node in self._evaluator.start_order:
            if self.problem.graph.is_step(node):
                members.setdefault(self.group_of[node], []).append(node)
        reads: dict[int, set[int]] = {}
        writes: dict[int, set[int]] = {}
        for at, dataset in enumerate(self.problem.graph.datasets):
            here = self.group_of[dataset.src]
            others = {self.group_of[reader] for reader in dataset.readers} - {here}
            if others:
                writes.setdefault(here, set()).add(at)
            for other in others:
                reads.setdefault(other, set()).add(at)
        return {
            first: self._make_bundle(tuple(steps), frozenset(reads.get(first, ())), frozenset(writes.get(first, ())))
            for first, steps in members.items()
        }

    def _make_bundle(self, members: tuple[int, ...], reads: frozenset[int], writes: frozenset[int]) -> Bundle:
        cluster, datasets = self.problem.cluster, self.problem.graph.datasets
        shape = self._evaluator.size_group(f"launch_{self.problem.graph.ids[min(members)]}", members)
        size = sum([datasets[at].bytes for at in reads]) + sum([datasets[at].bytes for at in writes])
        seconds = cluster.application_start_s + shape.schedule.compute_s + size / (cluster.spill_mb_s * MIB)
        return Bundle(members, reads, writes, shape.held_cores, seconds)

    def _may_merge(self, one: int, other: int) -> bool:
        rules, graph = self.problem.rules, self.problem.graph
        if rules.color[one] != rules.color[other]:
            return False
        return rules.may_join(self.bundles[other].members, self.bundles[one].members, graph.loop)

    def _has_detour(self, one: int, other: int) -> bool:
        """Whether a path from ``one`` to ``other`` leads through a third."""
        reached = {node for node in self.nexts[one] if node != other}
        queue = list(reached)
        for node in queue:
            # In doubt there is a detour: a merge that is not made costs time, one that closes a cycle never starts.
            if len(queue) > VISITED or other in self.nexts[node]:
                return True
            fresh = self.nexts[node] - reached
            reached |= fresh
            queue += fresh
        return False
