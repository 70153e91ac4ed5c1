"""What waits for what: between the steps of one group, and between groups and ordinary tasks.

{a ══> b} ══> {c} ──> (t) ──> {d}     steps   a b c d  at  0 1 2 3, then the task t at 4
                                      units   {a b} {c} {d} are 0 1 2, then (t) is 3
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter

from msgspec import Struct

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.checking.facts.loops import find_loops
from airflow_dagsched.plan.plan_types import Group

Dataset = tuple[str, str]
"""Source and output."""
_src, _dst = attrgetter("src"), attrgetter("dst")


class Edges(Struct, frozen=True):
    """Those of the dataflow, by the places of steps and the numbers of units."""

    place: dict[str, int]
    """Of each step of a group, the first if it is in several; then of each ordinary task."""
    later: list[list[int]]
    """For each step the places of those of its group that wait for it and stand behind it: what reads of a step of a
    loop waits for all of the loop, and all of the loop for what any of its steps reads.
    """
    back: list[tuple[str, str]]
    """Between steps of one group, to one that does not stand behind the other."""
    beyond: list[list[int]]
    """For each step and task the places of those that wait for it elsewhere; empty where all are in one unit."""
    crossing: dict[Dataset, list[int]]
    """Of each dataset that another group reads, the places of its readers there, by channel."""
    pipelined: dict[Dataset, list[str]]
    """Those of these readers that are handed rows inside the application, if they are in it."""
    unit_at: list[int]
    """Of each step and task."""
    above: list[set[int]]
    """For each unit those that it takes from."""
    order: list[int]
    """The units, each behind all it takes from; see ``order_units``."""

    @classmethod
    def of(cls, dataflow: Dataflow, groups: Sequence[Group]) -> Edges:
        """Look at every channel and every other edge once."""
        names = [name for group in groups for name in group.steps] + [task.id for task in dataflow.tasks]
        unit_at = [number for number, group in enumerate(groups) for _ in group.steps]
        unit_at += range(len(groups), len(groups) + len(dataflow.tasks))
        # Reversed, so that of a step in several groups the first counts: the plan may be nonsense.
        place = dict(zip(reversed(names), reversed(range(len(names))), strict=True))
        above: list[set[int]] = [set() for _ in range(len(groups) + len(dataflow.tasks))]
        later: list[list[int]] = [[] for _ in names]
        beyond: list[list[int]] = [[] for _ in names] if len(above) > 1 else []
        back: list[tuple[str, str]] = []
        crossing: dict[Dataset, list[int]] = defaultdict(list)
        pipelined: dict[Dataset, list[str]] = defaultdict(list)
        at = place.get
        channels = zip(map(_src, dataflow.channels), map(_dst, dataflow.channels), dataflow.channels, strict=True)
        # Columns, not pairs: a loop that unpacks each of many edges would take longer.
        rowless = zip(*zip(*dataflow.dependencies, strict=True), repeat(None)) if dataflow.dependencies else ()
        for src, dst, channel in chain(channels, rowless):
            here, there = at(src), at(dst)
            if here is None or there is None:  # a step in no group: ``check_members`` says so
                continue
            # Also an edge that carries no rows keeps groups in order.
            if unit_at[here] != unit_at[there]:
                above[unit_at[there]].add(unit_at[here])
                beyond[here].append(there)
                if channel is not None:
                    dataset = src, channel.output
                    crossing[dataset].append(there)
                    if channel.kind == "pipelined":
                        pipelined[dataset].append(dst)
            # In one group the order of its steps decides: an edge against it is a loop's, or an error
            # (``check_waits``).
            elif here < there:
                later[here].append(there)
            else:
                back.append((src, dst))
        if back:  # as in every loop
            _join_loops(later, back, names, find_loops(dataflow))
        return cls(place, later, back, beyond, crossing, pipelined, unit_at, above, order_units(above))


def _join_loops(
    later: list[list[int]], back: list[tuple[str, str]], names: Sequence[str], loop: Mapping[str, str]
) -> None:
    """Add to ``later`` and ``back`` what loops wait for, and what waits for them."""
    units = [loop.get(name, name) for name in names]
    members: dict[str, list[int]] = defaultdict(list)
    for at, unit in enumerate(units):
        members[unit].append(at)
    direct = dict.fromkeys((units[src], units[dst]) for src, afters in enumerate(later) for dst in afters)
    for before, after in direct:
        if before == after or len(members[before]) == len(members[after]) == 1:
            continue
        for here in members[before]:
            known = set(later[here])
            later[here] += [there for there in members[after] if here < there and there not in known]
            back += [(names[here], names[there]) for there in members[after] if here > there]


def order_units(above: Sequence[set[int]]) -> list[int]:
    """The units, each behind all it takes from; those that wait for each other, and what waits for them, are left out.

    Taking away what waits for nothing, again and again (Kahn 1962).
    """
    below: list[list[int]] = [[] for _ in above]
    waiting = list(map(len, above))
    for unit, before in enumerate(above):
        for other in before:
            below[other].append(unit)
    done = [unit for unit, count in enumerate(waiting) if not count]
    for unit in done:  # grows while it is walked
        for after in below[unit]:
            waiting[after] -= 1
            if not waiting[after]:
                done.append(after)
    return done
