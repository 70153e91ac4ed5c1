"""A genetic search of activity lists in which every child is also a pass of forward-backward improvement.

    father, early   ──list for the late side──┐
    mother, any     ──list for the late side──┴─> crossed ──read──> late ──read back──> child, early

A schedule is made from the network's start (its activities are early) or from its end (late), and has a list
for either side. Reading the list of an early schedule on the late side is half of forward-backward improvement
already, so a child is crossed there: it costs two schedules and not three. It takes its father's place if it
is no longer, so members stay different; a schedule that is there already is not taken again.

The budget is a number of schedules, never a time, and chance has a fixed seed: the result is a function of
the network and the budget. The search ends early at the lower bound.

Sources: Hartmann (Naval Research Logistics 45, 1998) for lists and crossover; Debels and Vanhoucke
(Operations Research 55, 2007) for two populations, one of each side; Valls, Ballestin, Quintanilla
(EJOR 185, 2008) for improving every child.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import ceil

from msgspec import Struct, field

from airflow_dagsched.plan.rcpsp.lists import cross_lists, list_back, list_onward, sort_by_rank
from airflow_dagsched.plan.rcpsp.parallel import schedule_in_parallel
from airflow_dagsched.plan.rcpsp.paths import measure_tails
from airflow_dagsched.plan.rcpsp.project import Network, mirror_network
from airflow_dagsched.plan.rcpsp.serial import FOREVER, Ends, schedule_serially

Scheme = Callable[[Network, Sequence[int]], Ends]

CHILDREN = 60
"""Each place in the population sees about so many children, so its size follows from the budget."""
FEWEST = 8
"""Members of the smallest population."""
NOISE = 0.3
"""Share of the critical path by which ranks are shaken to make the first members."""
SWAPS = 0.05
"""Pairs of neighbours in a child's list that change places, as a share of the list."""
LEAST_SHARE, MOST_SHARE = 0.25, 0.75
"""Of a list, that a child has from its mother."""
WIDEST_SERIAL = 300
"""Activities up to which the serial scheme is cheap; beyond, the parallel one, which is near linear."""


class _Member(Struct, frozen=True):
    """A schedule and what it hands down."""

    makespan: int
    side: int
    """0: made from the network's start, 1: from its end."""
    ends: tuple[int, ...]
    """Counted from the side it was made from."""
    lists: dict[int, list[int]] = field(default_factory=dict)
    """The list to read on a side, once it was asked for: most children are never asked."""


class _Search(Struct):
    """What every part of a search needs."""

    sides: tuple[Network, Network]
    scheme: Scheme
    bound: int
    left: int
    """Schedules that may still be made."""
    chance: random.Random
    shortest: int = FOREVER
    """Makespan of the best schedule so far."""

    def may_continue(self) -> bool:
        return self.left > 0 and self.shortest > self.bound

    def make_from_list(self, side: int, sequence: Sequence[int]) -> _Member:
        return self.make_member(side, self.scheme(self.sides[side], sequence))

    def make_member(self, side: int, ends: Ends) -> _Member:
        """A member of a schedule just made."""
        self.left -= 1
        member = _Member(max(ends, default=0), side, tuple(ends))
        self.shortest = min(self.shortest, member.makespan)
        return member

    def list_of(self, member: _Member, side: int) -> list[int]:
        """The list of ``member`` to read on ``side``."""
        found = member.lists.get(side)
        if found is None:
            lists = list_onward if side == member.side else list_back
            found = member.lists[side] = lists(self.sides[member.side], member.ends)
        return found

    def improve_member(self, member: _Member, passes: int) -> _Member:
        """Read on the other side, and back. The serial scheme never makes it longer; the parallel one may."""
        for _ in range(passes):
            side = 1 - member.side
            read = self.make_from_list(side, self.list_of(member, side))
            member = read if read.makespan <= member.makespan else member
        return member


def search_schedules(net: Network, bound: int, schedules: int) -> Ends:
    """Ends of the best of about ``schedules`` schedules, at least three; no makespan is below ``bound``."""
    # The serial scheme walks along the profile for each activity: quadratic where many run side by side.
    scheme = schedule_serially if len(net) <= WIDEST_SERIAL else _schedule_list_in_parallel
    # A fixed seed: equal projects, equal schedules.
    state = _Search((net, mirror_network(net)), scheme, bound, schedules, random.Random(0))
    members = _make_first_members(state, max(FEWEST, schedules // (2 * CHILDREN)))
    _evolve_members(state, members)
    best = min(members, key=lambda member: member.makespan)
    return _convert_to_ends(net, best)


def _schedule_list_in_parallel(net: Network, sequence: Sequence[int]) -> Ends:
    rank = [0] * len(net)
    for at, activity in enumerate(sequence):
        rank[activity] = at
    return schedule_in_parallel(net, rank)


def _make_first_members(state: _Search, count: int) -> list[_Member]:
    """By latest start and by latest end, then by shaken latest ends; one at least."""
    net = state.sides[0]
    latest_end = [-tail for tail in measure_tails(net)]
    latest_start = [end - duration for end, duration in zip(latest_end, net.durations, strict=True)]
    shake = -NOISE * min(latest_start, default=0)
    # Without asking for the budget: however large the project, there is a schedule that was improved once.
    members = [state.improve_member(state.make_member(0, schedule_in_parallel(net, latest_start)), 2)]
    members += [
        state.improve_member(state.make_from_list(0, sort_by_rank(net, rank)), 2)
        for rank in (latest_start, latest_end)
        if state.may_continue()
    ]
    while len(members) < count and state.may_continue():
        rank = [end + int(state.chance.random() * shake) for end in latest_end]
        # Both schemes in turn: parallel ones are good at once, serial ones differ more.
        ends = schedule_in_parallel(net, rank) if len(members) % 2 else state.scheme(net, sort_by_rank(net, rank))
        members.append(state.improve_member(state.make_member(0, ends), 2))
    return members


def _evolve_members(state: _Search, members: list[_Member]) -> None:
    """Every member in turn is father of a child, until the budget is spent or the bound is reached."""
    known = {member.ends for member in members}
    at = 0
    while state.may_continue():
        father = members[at]
        # One pass more and not two: reading the crossed list is the first half of one already.
        child = state.improve_member(state.make_from_list(1 - father.side, _make_child(state, father, members)), 1)
        # Equally long but different is enough: the population moves on across a plateau.
        if child.makespan <= father.makespan and child.ends not in known:
            known.discard(father.ends)
            known.add(child.ends)
            members[at] = child
        at = (at + 1) % len(members)


def _make_child(state: _Search, father: _Member, members: Sequence[_Member]) -> list[int]:
    """A list for the side that the father was not made from; the mother is the better of two."""
    chance, side = state.chance.random, 1 - father.side
    one, other = members[int(chance() * len(members))], members[int(chance() * len(members))]
    mother = one if one.makespan <= other.makespan else other
    length = len(father.ends)
    count = int(length * (LEAST_SHARE + chance() * (MOST_SHARE - LEAST_SHARE)))
    first = int(chance() * (length - count + 1))
    sequence = cross_lists(state.list_of(father, side), state.list_of(mother, side), first, count)
    _swap_neighbours(sequence, state.sides[side].above, chance)
    return sequence


def _swap_neighbours(sequence: list[int], above: Sequence[Sequence[int]], chance: Callable[[], float]) -> None:
    """Some neighbours change places where order allows. There are two: a single activity is at its bound at once."""
    for _ in range(ceil(SWAPS * len(sequence))):
        at = int(chance() * (len(sequence) - 1))  # a call of randrange costs more
        one, other = sequence[at], sequence[at + 1]
        # Neighbours alone are swapped: an edge between others cannot be broken by it.
        if one not in above[other]:
            sequence[at], sequence[at + 1] = other, one


def _convert_to_ends(net: Network, member: _Member) -> Ends:
    if member.side == 0:
        return list(member.ends)
    # Counted from the end, an activity starts where it ends: time runs the other way.
    return [member.makespan - end + duration for end, duration in zip(member.ends, net.durations, strict=True)]
