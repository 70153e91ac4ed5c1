"""Groups that are alike, so that a page or a picture shows one of them and says how many there are.

    load ──> s1, s2 ... s98 ──> join          three on the page: load, the 98, join

Alike are groups of as many steps, for the same reason, of the same containers, that wait for the same or for alike
groups, and are about as long: names and numbers in their reasons may differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence

from msgspec import Struct

from airflow_dagsched.plan.plan_types import Group, Plan, Pruned
from airflow_dagsched.plan.spill import Spill

LEAST = 3
"""Two that are alike are shown both."""
_OWN = re.compile(r"'[^']*'|\d+(\.\d+)?")
"""What is a group's own in a sentence: names and numbers."""


class Alike(Struct, frozen=True):
    """Groups in the order of the plan; most often one alone."""

    groups: tuple[Group, ...]

    @property
    def first(self) -> Group:
        """The one that is shown."""
        return self.groups[0]

    @property
    def start_s(self) -> float:
        """Seconds at which the first of them starts."""
        return min(group.start_s for group in self.groups)

    @property
    def end_s(self) -> float:
        """Seconds at which the last of them has ended."""
        return max(group.end_s for group in self.groups)

    @property
    def name(self) -> str:
        """``launch_s1``, or ``launch_s1 x 98``."""
        return f"{self.first.id}{self._count()}"

    def shorten_name(self, width: int) -> str:
        """The name in so many characters: of a long one the count stays."""
        count = self._count()
        return f"{self.first.id[: max(0, width - len(count))]}{count}"

    def find_lengths(self) -> tuple[float, float]:
        """Seconds of the shortest and of the longest."""
        lengths = [group.end_s - group.start_s for group in self.groups]
        return min(lengths), max(lengths)

    def _count(self) -> str:
        return f" x {len(self.groups)}" if len(self.groups) > 1 else ""


def collapse_groups(groups: Sequence[Group]) -> list[Alike]:
    """The groups as they are shown, each at the place of the first of its kind."""
    kinds = _number_kinds(groups)
    members: dict[int, list[Group]] = {}
    for group in groups:
        members.setdefault(kinds[group.id], []).append(group)
    found: dict[Hashable, Alike] = {}
    for group in groups:
        kind = members[kinds[group.id]]
        if len(kind) < LEAST:
            found[group.id] = Alike((group,))
        else:
            found.setdefault(kinds[group.id], Alike(tuple(kind)))
    return list(found.values())


def collapse_spills(plan: Plan) -> list[list[Spill]]:
    """The spills as they are shown: those of as many bytes, between groups of the same kinds, for the same reason."""
    kinds = _number_kinds(plan.groups)
    home = {step: kinds[group.id] for group in plan.groups for step in group.steps}
    found: dict[Hashable, list[Spill]] = {}
    for spill in plan.spills:
        readers = len(spill.dst), frozenset(home.get(name) for name in spill.dst)
        key = home.get(spill.src), spill.output, readers, spill.bytes, _blur(spill.reason)
        found.setdefault(key, []).append(spill)
    few = ([[spill] for spill in spills] if len(spills) < LEAST else [spills] for spills in found.values())
    return [spills for shown in few for spills in shown]


def _number_kinds(groups: Iterable[Group]) -> dict[str, int]:
    """Id of each group -> a number of its kind; each of ``groups`` is behind those that it waits for."""
    known: dict[Hashable, int] = {}
    kinds: dict[str, int] = {}
    for group in groups:
        kinds[group.id] = known.setdefault(_describe_kind(group, kinds), len(known))
    return kinds


def _describe_kind(group: Group, kinds: dict[str, int]) -> Hashable:
    boxes = group.executors
    asked = (len(boxes), boxes[0].cores, boxes[0].memory_mb) if boxes else ()
    # Within a factor of two: what takes hours is not like what takes seconds.
    length = math.frexp(group.end_s - group.start_s)[1]
    awaited = frozenset(kinds.get(name, name) for name in group.after)
    held = group.residency, group.slots, group.limit, group.progress, asked, length
    left_out = _blur_pruned(group.pruned), _blur_pruned(group.unpruned), _blur(group.placement)
    return _blur(group.reason), len(group.steps), awaited, held, left_out


def _blur_pruned(entries: Iterable[Pruned]) -> Hashable:
    return frozenset((entry.what, _blur(entry.reason)) for entry in entries)


def _blur(text: str) -> str:
    return _OWN.sub("'", text)
