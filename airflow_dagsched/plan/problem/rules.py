"""What the author keeps apart, and keeps together.

together=[[a, c]]: a ══> b ══> c       b lies between them, so a, b and c become one node,
                   └────────> d        as the steps of a loop do: nothing splits it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import find_strong_components, sort_topologically
from airflow_dagsched.plan.problem.colors import assign_colors
from airflow_dagsched.plan.problem.partition import find_edges_between, find_root, join_parts
from airflow_dagsched.plan.settings import Settings

WHERE = "settings"


class Rules(Struct, frozen=True):
    """What may share a group: nodes of one color that are not apart, and so many."""

    color: Sequence[int]
    """By node; see ``colors``."""
    apart: dict[int, frozenset[int]]
    """First node of a loop -> those of the loops it must not share a group with."""
    most_steps: int
    size: Sequence[int]
    """Steps of each loop, by its first node; elsewhere zero."""

    def may_share(self, nodes: Sequence[int], loop: Sequence[int]) -> bool:
        """Whether these nodes may be one group; ``loop``: for each node the first of those never split from it."""
        if len({self.color[node] for node in nodes}) > 1 or len(nodes) > self.most_steps:
            return False
        units = {loop[node] for node in nodes}
        return all(units.isdisjoint(self.apart.get(unit, ())) for unit in units)

    def may_join(self, nodes: Sequence[int], others: Sequence[int], loop: Sequence[int]) -> bool:
        """Whether two groups of one color that may be may be one; only what is new is looked at."""
        if len(nodes) + len(others) > self.most_steps:
            return False
        # Hardly anybody keeps steps apart: then no sets are made of what may be 100,000 steps.
        units = {loop[node] for node in nodes} if self.apart else frozenset[int]()
        return all(units.isdisjoint(self.apart.get(loop[node], ())) for node in others)


def apply_rules(graph: Graph, settings: Settings) -> tuple[Graph, Rules]:
    """The graph with steps that stay together drawn together, and its rules.

    Raises ``InvalidInput`` where the lists name no step or contradict each other or the dataflow.
    """
    color = assign_colors(graph)
    if settings.together:
        graph = _join_lists(graph, color, _number_lists(graph, "together", settings.together))
    size = [0] * len(graph.ids)
    for first in graph.loop:
        size[first] += 1
    # A loop is never split: then no grouping at all would obey the limit.
    if max(size, default=0) > settings.max_steps_per_group:
        first = max(range(len(size)), key=size.__getitem__)
        rule = f"{size[first]} steps repeat, or stay, together with {graph.ids[first]!r}"
        raise InvalidInput(WHERE, "max_steps_per_group", rule)
    return graph, Rules(color, _find_apart(graph, settings), settings.max_steps_per_group, size)


def _number_lists(graph: Graph, field: str, lists: Sequence[Sequence[str]]) -> list[list[int]]:
    """The lists as nodes."""
    for at, names in enumerate(lists):
        for name in names:
            if name not in graph.index or not graph.is_step(graph.index[name]):
                raise InvalidInput(WHERE, f"{field}[{at}]", f"no step is called {name!r}")
    return [[graph.index[name] for name in names] for names in lists]


def _join_lists(graph: Graph, color: Sequence[int], lists: list[list[int]]) -> Graph:
    """With what lies between steps that stay together, too."""
    parent = list(graph.loop)
    for nodes in lists:
        for node in nodes[1:]:
            join_parts(parent, nodes[0], node)
    group_of = [find_root(parent, node) for node in range(len(parent))]
    # What lies on a path between two that stay together is on a cycle once they are one node.
    owner = find_strong_components(find_edges_between(graph, group_of))
    loop = [owner[of] for of in group_of]
    for node, first in enumerate(loop):
        # Refused here, with names: later on it would be a group that no rule allows.
        if color[node] != color[first]:
            raise InvalidInput(WHERE, "together", _explain_contradiction(graph, node, first))
    condensed = find_edges_between(graph, loop)
    members: dict[int, list[int]] = {}
    for node in graph.order:
        members.setdefault(loop[node], []).append(node)
    order = tuple(node for first in sort_topologically(condensed) for node in members.get(first, ()))
    return replace(graph, loop=tuple(loop), condensed=condensed, order=order)


def _explain_contradiction(graph: Graph, node: int, first: int) -> str:
    one, other = graph.ids[first], graph.ids[node]
    if not graph.is_step(node):
        return f"ordinary task {other!r} stands between {one!r} and a step that stays together with it"
    return f"steps {one!r} and {other!r} cannot share an application: one is isolated, or their settings differ"


def _find_apart(graph: Graph, settings: Settings) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for one, other in _list_pairs(_number_lists(graph, "apart", settings.apart)):
        first, second = graph.loop[one], graph.loop[other]
        if first == second:
            rule = f"steps {graph.ids[one]!r} and {graph.ids[other]!r} repeat, or stay, together"
            raise InvalidInput(WHERE, "apart", rule)
        found.setdefault(first, set()).add(second)
        found.setdefault(second, set()).add(first)
    return {node: frozenset(others) for node, others in found.items()}


def _list_pairs(lists: list[list[int]]) -> Iterator[tuple[int, int]]:
    for nodes in lists:
        distinct = list(dict.fromkeys(nodes))
        # Each step of a list is apart from each other of it.
        yield from ((one, other) for at, one in enumerate(distinct) for other in distinct[:at])
