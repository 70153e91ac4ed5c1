"""The pass that finds the groups: subgraphs that can run to completion as one Spark application.

    a ══> b ══> d            a ══> b ══> d           a ══> b ──> (t) ──> d
    └~~~> c ~~~>┘            c ══> d                 └══════════════════>┘
    {a b c d}: c alone       {a b c d}               {a b} (t) {d}: the ordinary task t keeps
    would wait for the                               d apart, so a ══> d becomes a spill
    group that waits
    for it                     ══ pipelined   ~~ buffered   ── dependency   ( ) ordinary task

Words. *Color*: what must be equal within one application (settings, the author's ``isolate``). *Part*: steps
joined by pipelined channels, or plain edges, of one color. *Knot*: parts and ordinary tasks that wait for each other.
*Stage*: a level inside a knot; it never falls along an edge.

Guarantee. Both ends of a pipelined channel are in one group or the channel is a spill; the groups together
with the ordinary tasks are acyclic: a knot without tasks and of one color is one group, any other is cut
by stages. Groups of one color that wait for the same are one group: two applications would start for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.codec import check_value
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import find_strong_components, reverse_edges, sort_topologically
from airflow_dagsched.model.validate import build_valid_graph
from airflow_dagsched.plan.grouping.limits import cut_to_limits
from airflow_dagsched.plan.grouping.reasons import Reasons
from airflow_dagsched.plan.grouping.spills import find_spills
from airflow_dagsched.plan.grouping.stages import NOBODY, Stages, find_stages
from airflow_dagsched.plan.problem.partition import find_edges_between, find_parts, merge_alike, name_by_least
from airflow_dagsched.plan.problem.rules import Rules, apply_rules
from airflow_dagsched.plan.report.group_sentences import say_group
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.spill import Spill


class Grouped(Struct, frozen=True):
    """One group: its steps in topological order, the least (order, natural id) of the free ones first."""

    id: str
    steps: tuple[str, ...]
    after: tuple[str, ...]
    """Groups, then ordinary tasks, directly above any of its steps."""
    reason: str


class Grouping(Struct, frozen=True):
    """All groups, in an order in which they can run, and the channels cut between them."""

    groups: tuple[Grouped, ...]
    spills: tuple[Spill, ...]


def find_groups(dataflow: Dataflow, settings: Settings = DEFAULTS) -> Grouping:
    """The coarsest groups of ``dataflow``; no cluster is needed. Linear but for sorting.

    Raises ``InvalidInput`` where the dataflow breaks a rule, or contradicts the settings, or a group's id is
    taken by a step or task.
    """
    graph, rules = apply_rules(build_valid_graph(dataflow), check_value(Settings, settings, "settings"))
    stages, group_of = find_coarsest(graph, rules)
    members = _list_members(graph, group_of)
    names = _name_groups(graph, members)
    refuse_clash(graph, names.values())
    why = Reasons.of(graph, rules, stages)
    return Grouping(
        _describe_groups(graph, why, group_of, members, names), find_spills(graph, group_of, why.explain_cut)
    )


def find_fewest_groups(dataflow: Dataflow, settings: Settings = DEFAULTS) -> Grouping:
    """As ``find_groups`` where nothing is known to run on: what is buffered is no reason for an application more.

    Raises as ``find_groups``.
    """
    buffered = {(one.src, one.output, one.dst) for one in dataflow.channels if one.kind == "buffered"}
    if not buffered:
        return find_groups(dataflow, settings)
    # Without bytes: where limits cut, they cut there rather than where rows are handed over.
    joined = (replace(one, kind="pipelined", bytes=0) if one.kind == "buffered" else one for one in dataflow.channels)
    found = find_groups(replace(dataflow, channels=tuple(joined)), settings)
    cut = ((one, tuple(dst for dst in one.dst if (one.src, one.output, dst) not in buffered)) for one in found.spills)
    return replace(found, spills=tuple(replace(one, dst=readers) for one, readers in cut if readers))


def find_coarsest(graph: Graph, rules: Rules) -> tuple[Stages, list[int]]:
    """Parts that pipelined channels join, cut only where they must be: the home of each node."""
    parts = find_parts(graph, rules.color)
    if not any(parts):  # all nodes are in part 0: one part, and no ordinary task
        return _keep_whole(graph, rules)
    stages = find_stages(graph, rules.color, _find_knots(graph, parts))
    apart = _assign_groups(graph, stages)
    # Drawn together before limits cut: what waits for the same may be too much for one group.
    return stages, cut_to_limits(
        graph, rules, name_by_least(merge_alike(apart, stages.color, find_edges_between(graph, apart)))
    )


def _keep_whole(graph: Graph, rules: Rules) -> tuple[Stages, list[int]]:
    """All steps hang together, and nothing stands between them."""
    zero = [0] * len(graph.ids)
    return Stages(zero, zero, rules.color, [NOBODY] * len(zero), frozenset()), cut_to_limits(graph, rules, zero)


def find_fewest(graph: Graph, rules: Rules) -> tuple[Stages, list[int]]:
    """One group for all steps of a color, cut only where ordinary tasks or other colors stand between."""
    stages = find_stages(graph, rules.color, [0] * len(graph.ids))
    return stages, cut_to_limits(graph, rules, name_by_least(_assign_groups(graph, stages)))


def _find_knots(graph: Graph, parts: Sequence[int]) -> Sequence[int]:
    """For each node the least node of its knot; where nothing is joined, no parts wait for each other."""
    edges = find_edges_between(graph, parts)
    # Nothing was joined, and the condensed graph has no cycles: each part is its own knot.
    if edges is graph.condensed:
        return parts
    owner = find_strong_components(edges)
    return [owner[part] for part in parts]


def _assign_groups(graph: Graph, stages: Stages) -> list[int]:
    """For each node the first node of its group; an ordinary task is its own."""
    first: dict[tuple[int, int, int], int] = {}
    homes = []
    for node in range(len(graph.ids)):
        # Of these three no edge leads back: so the groups cannot wait for each other.
        key = (stages.knot[node], stages.level[node], stages.color[node])
        homes.append(first.setdefault(key, node) if graph.is_step(node) else node)
    return homes


def _list_members(graph: Graph, group_of: Sequence[int]) -> dict[int, list[int]]:
    """The steps of each group in topological order."""
    members: dict[int, list[int]] = {}
    for node in graph.order:
        if graph.is_step(node):
            members.setdefault(group_of[node], []).append(node)
    return members


def _name_groups(graph: Graph, members: dict[int, list[int]]) -> dict[int, str]:
    if len(members) == 1:
        # The only group needs no step to be called after.
        return dict.fromkeys(members, "launch")
    return {first: f"launch_{graph.ids[first]}" for first in members}


def refuse_clash(graph: Graph, names: Iterable[str]) -> None:
    """Raise ``InvalidInput`` where the id of a group is taken."""
    for name in names:
        # Steps, tasks and groups are Airflow tasks of one DAG: their ids share one namespace.
        if name in graph.index:
            where = f"dataflow {graph.dataflow.name!r}"
            raise InvalidInput(
                where, _find_field(graph.dataflow, name), f"the id {name!r} is needed for a group: rename it"
            )


def _find_field(dataflow: Dataflow, name: str) -> str:
    steps = (f"steps[{at}].id" for at, step in enumerate(dataflow.steps) if step.id == name)
    tasks = (f"tasks[{at}].id" for at, task in enumerate(dataflow.tasks) if task.id == name)
    return next(chain(steps, tasks))


def _describe_groups(
    graph: Graph, why: Reasons, group_of: Sequence[int], members: dict[int, list[int]], names: dict[int, str]
) -> tuple[Grouped, ...]:
    edges = find_edges_between(graph, group_of)
    above = reverse_edges(edges)
    return tuple(
        Grouped(
            id=names[first],
            steps=tuple(graph.ids[node] for node in members[first]),
            after=tuple(names.get(node, graph.ids[node]) for node in above[first]),
            reason=say_group(why.explain_group(members[first], is_only=len(members) == 1)),
        )
        for first in sort_topologically(edges)
        if first in members
    )
