"""A grouping under construction: groups that are merged two at a time, with what each holds and takes.

Guarantee. Two groups are merged only if no other path joins them and the rules allow it, so the groups stay
acyclic with the ordinary tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.parts import quotient
from airflow_dagsched.plan.shape import shape_of
from airflow_dagsched.plan.work import MIB

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

    def __init__(self, home: Sequence[int], given: Given) -> None:
        self.given = given
        self.home = list(home)
        self._place = [0] * len(home)
        for at, node in enumerate(given.work.order):
            self._place[node] = at
        edges = quotient(given.graph, home)
        self.nexts: dict[int, set[int]] = {node: set(edges[node]) for node in set(home)}
        self.above: dict[int, set[int]] = {node: set() for node in self.nexts}
        for node, afters in self.nexts.items():
            for after in afters:
                self.above[after].add(node)
        self.bundles = self._bundles()

    def merged(self, one: int, other: int) -> Bundle | None:
        """What ``one`` and ``other``, which waits for it, would be together; None where that may not or cannot be."""
        if not self._allowed(one, other) or self._detour(one, other):
            return None
        first, second = self.bundles[one], self.bundles[other]
        members = sorted(first.members + second.members, key=self._place.__getitem__)
        inner = {one, other}
        datasets, home = self.given.graph.datasets, self.home
        reads = frozenset(at for at in first.reads | second.reads if home[datasets[at].src] not in inner)
        writes = frozenset(
            at
            for at in first.writes | second.writes
            if any(home[reader] not in inner for reader in datasets[at].readers)
        )
        try:
            return self._bundle(tuple(members), reads, writes)
        except DoesNotFit:
            return None

    def merge(self, one: int, other: int, bundle: Bundle) -> int:
        """Make them one group; returns its first node."""
        kept, gone = min(one, other), max(one, other)
        for node in self.bundles.pop(gone).members:
            self.home[node] = kept
        self.bundles[kept] = bundle
        for edges, backs in ((self.nexts, self.above), (self.above, self.nexts)):
            for node in edges.pop(gone):
                backs[node].discard(gone)
                if node != kept:
                    edges[kept].add(node)
                    backs[node].add(kept)
        return kept

    def _bundles(self) -> dict[int, Bundle]:
        members: dict[int, list[int]] = {}
        for node in self.given.work.order:
            if self.given.graph.is_step(node):
                members.setdefault(self.home[node], []).append(node)
        reads: dict[int, set[int]] = {}
        writes: dict[int, set[int]] = {}
        for at, dataset in enumerate(self.given.graph.datasets):
            here = self.home[dataset.src]
            others = {self.home[reader] for reader in dataset.readers} - {here}
            if others:
                writes.setdefault(here, set()).add(at)
            for other in others:
                reads.setdefault(other, set()).add(at)
        return {
            first: self._bundle(tuple(steps), frozenset(reads.get(first, ())), frozenset(writes.get(first, ())))
            for first, steps in members.items()
        }

    def _bundle(self, members: tuple[int, ...], reads: frozenset[int], writes: frozenset[int]) -> Bundle:
        cluster, datasets = self.given.cluster, self.given.graph.datasets
        shape = shape_of(f"launch_{self.given.graph.ids[min(members)]}", members, self.given)
        size = sum([datasets[at].bytes for at in reads]) + sum([datasets[at].bytes for at in writes])
        seconds = cluster.application_start_s + shape.inside.compute_s + size / (cluster.spill_mb_s * MIB)
        return Bundle(members, reads, writes, shape.held_cores, seconds)

    def _allowed(self, one: int, other: int) -> bool:
        rules, graph = self.given.rules, self.given.graph
        if rules.color[one] != rules.color[other]:
            return False
        first, second = self.bundles[one].members, self.bundles[other].members
        if len(first) + len(second) > rules.most_steps:
            return False
        if not rules.apart:
            return True
        units = {graph.loop[node] for node in second}
        return all(units.isdisjoint(rules.apart.get(graph.loop[node], ())) for node in first)

    def _detour(self, one: int, other: int) -> bool:
        """Whether a path from ``one`` to ``other`` leads through a third."""
        reached = {node for node in self.nexts[one] if node != other}
        queue = list(reached)
        for node in queue:
            if len(queue) > VISITED or other in self.nexts[node]:
                return True
            fresh = self.nexts[node] - reached
            reached |= fresh
            queue += fresh
        return False
