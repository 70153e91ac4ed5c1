"""Whether a launch task takes steps of later ones, as it begins or before it ends: if the run then ends sooner.

::

    K [a] ── t ── L [s r]        K [a s] ── t ── L [r]
    100 s are left               80 s: taken, s runs while t is waited for

Before it ends, with its own steps done, it takes what became ready meanwhile as an application of its own.

A takeover changes no task of the DAG and no answer, only when a step runs and in which application. Deterministic:
equal facts, equal decision.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.launch.moves.eligible import Sight, add_needed, list_eligible
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.grouping.coarsest import Grouped
from airflow_dagsched.plan.problem.rules import Rules

Price = Callable[[tuple[Grouped, ...]], float | None]
"""Seconds until all that is left ends with these launch tasks; None: some group of them has no room."""
Reason = Literal[
    "ends sooner", "no gain", "nothing is ready", "has nothing to run", "not asked for", "limited", "no forecast"
]
"""``limited``: by a time-out, a pool's slots, memory that ran out, or a run with one application a step."""


class Decision(Struct, frozen=True, kw_only=True):
    """What one launch task takes, and why."""

    take: tuple[str, ...] = ()
    """Steps of launch tasks that have not begun."""
    left_s: float = 0.0
    """What is predicted to be left, as it is decided."""
    saved_s: float = 0.0
    """So much sooner than without."""
    reason: Reason

    def line(self) -> str:
        """For the launch task's log."""
        if not self.take:
            return f"takes no step of a later launch task: {self.reason}"
        names = ", ".join(self.take)
        return f"takes {names}: what is left ends in {self.left_s:.0f} s, {self.saved_s:.0f} s sooner"


BESIDE = "taken"
"""Group of what is taken, where it is priced beside its launch task's own."""
NOTHING_TAKEN = Decision(reason="not asked for")


class Ahead(Struct, frozen=True):
    """The groups that a launch task chooses among."""

    graph: Graph
    rules: Rules
    mine: str
    groups: tuple[Grouped, ...]
    """Of all launch tasks, each step where it runs, as far as that is known."""
    margin: float
    """Share of what is left that a takeover must save."""
    is_over: bool = False
    """Whether its own steps have ended: what it takes now is an application of its own."""


def decide(ahead: Ahead, sight: Sight, price: Price) -> Decision:
    """What to take; nothing unless it saves more than the margin."""
    candidates = list(_list_candidates(ahead, list_eligible(ahead.graph, ahead.rules, sight)))
    if not candidates:
        return Decision(reason="nothing is ready")
    as_is = price(ahead.groups)
    if as_is is None:
        return Decision(reason="no forecast")
    ends = [(left, len(take), take) for take in candidates for left in _price_taken(ahead, take, price)]
    left_s, _, take = min(ends, default=(as_is, 0, ()))
    saved_s = as_is - left_s
    # A tie is no gain, even with a margin of 0.
    if saved_s <= max(0.0, ahead.margin * as_is):
        return Decision(left_s=round(as_is, DIGITS), reason="no gain")
    return Decision(take=take, left_s=round(left_s, DIGITS), saved_s=round(saved_s, DIGITS), reason="ends sooner")


def _price_taken(ahead: Ahead, take: tuple[str, ...], price: Price) -> Iterator[float]:
    """As a part of its application, unless that is over, and as one beside it. Each is a bound: of the first all that
    waits for any of its steps waits for the taken, too; the second starts once more, and has no core of the first.
    """
    ways = ((add_beside(ahead), BESIDE),) if ahead.is_over else ((ahead, ahead.mine), (add_beside(ahead), BESIDE))
    for each, home in ways:
        left_s = price(move_steps(each, dict.fromkeys(take, home)))
        if left_s is not None:
            yield left_s


def add_beside(ahead: Ahead) -> Ahead:
    """With room for what is taken in an application of its own."""
    return replace(ahead, groups=(*ahead.groups, Grouped(BESIDE, (), (), "taken from later launch tasks")))


def _list_candidates(ahead: Ahead, eligible: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """What of each launch task could be taken, with what has to run before it; and all of it."""
    parts = (add_needed(ahead.graph, eligible.intersection(group.steps), eligible) for group in ahead.groups)
    own = () if ahead.is_over else next(group.steps for group in ahead.groups if group.id == ahead.mine)
    for take in dict.fromkeys((*parts, eligible)):
        nodes = [ahead.graph.index[step] for step in (*own, *take)]
        if take and ahead.rules.may_share(nodes, ahead.graph.loop):
            yield tuple(sort_naturally(take))


def move_steps(ahead: Ahead, home: Mapping[str, str]) -> tuple[Grouped, ...]:
    """The groups with each step of ``home`` in the group that it names there; those without a step left are gone."""
    known = {step: home.get(step, group.id) for group in ahead.groups for step in group.steps}
    order = [ahead.graph.ids[node] for node in ahead.graph.order if ahead.graph.is_step(node)]
    inside: dict[str, list[str]] = {}
    for step in order:
        inside.setdefault(known[step], []).append(step)
    above = _list_after(ahead.graph, known)
    return tuple(
        replace(group, steps=tuple(inside[group.id]), after=_sort_after(ahead.groups, above[group.id]))
        for group in ahead.groups
        if group.id in inside
    )


def drop_done_edges(dataflow: Dataflow, done: Collection[str]) -> Dataflow:
    """The dataflow without edges from what has ended: nobody waits for it any more, whatever its group still runs."""
    return replace(
        dataflow,
        channels=tuple(each for each in dataflow.channels if each.src not in done),
        dependencies=tuple(edge for edge in dataflow.dependencies if edge[0] not in done),
    )


def _list_after(graph: Graph, home: Mapping[str, str]) -> dict[str, set[str]]:
    """Group -> groups and ordinary tasks directly above any of its steps."""
    above: dict[str, set[str]] = {group: set() for group in home.values()}
    for node, nexts in enumerate(graph.successors):
        source = home.get(graph.ids[node], graph.ids[node])
        for below in (graph.ids[each] for each in nexts):
            if below in home and home[below] != source:
                above[home[below]].add(source)
    return above


def _sort_after(groups: Sequence[Grouped], names: Iterable[str]) -> tuple[str, ...]:
    """Groups first."""
    found = {*names}
    ids = [group.id for group in groups if group.id in found]
    return (*ids, *sort_naturally(found.difference(ids)))
