"""What forces steps into different groups, whatever their sizes, with the names of who is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec import Struct

from airflow_dagsched.model.dataflow import DATAFLOW, Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.plan.grouping.stages import NOBODY, Stages
from airflow_dagsched.plan.problem.colors import TASK
from airflow_dagsched.plan.problem.partition import find_root, join_parts
from airflow_dagsched.plan.problem.rules import Rules
from airflow_dagsched.plan.reasons.grouping import (
    Between,
    CannotShare,
    ComesAfter,
    ComesBefore,
    CutBetween,
    CutReason,
    DifferentPools,
    DifferentSettings,
    ForcedReason,
    GroupLimit,
    GroupReason,
    IsolatedStep,
    JoinedByChannels,
    KeptApart,
    WaitForTheSame,
)

NAMED = 3
"""Of what keeps a group apart, the first few are named."""


class Reasons(Struct, frozen=True):
    """What forces groups apart: colors, ordinary tasks in between, the settings."""

    graph: Graph
    rules: Rules
    stages: Stages
    pipes: dict[int, list[int]]
    """Who is handed rows inside the application, if it is in it."""
    lenient: bool
    """Whether no rule keeps any two steps apart, as of most dataflows."""
    firsts: dict[int, dict[int, int]]
    """Of each knot that is cut the first step of each color."""

    @classmethod
    def of(cls, graph: Graph, rules: Rules, stages: Stages) -> Reasons:
        """Look up who is handed rows."""
        pipes: dict[int, list[int]] = {}
        for dataset in graph.datasets:
            pipes.setdefault(dataset.src, []).extend(dataset.pipelined)
        colors = {color for color in stages.color if color != TASK}
        lenient = len(colors) < 2 and not stages.cut and not rules.apart
        firsts: dict[int, dict[int, int]] = {}
        for node in range(len(graph.steps)) if stages.cut else ():
            firsts.setdefault(stages.knot[node], {}).setdefault(stages.color[node], node)
        return cls(graph, rules, stages, pipes, lenient, firsts)

    def explain_group(self, members: Sequence[int], *, is_only: bool) -> GroupReason:
        """Why these steps are one group; ``is_only``: there is no other."""
        graph = self.graph
        if is_only:
            return "only group"
        if any(graph.steps[node].isolate for node in members):
            return "isolated"
        forced = self._explain_stage(members) if self.stages.knot[members[0]] in self.stages.cut else None
        return forced or self._explain_members(members)

    def explain_cut(self, src: int, dst: int) -> CutReason:
        """Why the pipelined channel from step ``src`` to step ``dst`` is cut, when it had to be."""
        # Nothing forces it by itself: then the limit of steps a group has cut the row between them.
        return self.find_force(src, dst) or "settings"

    def find_force(self, src: int, dst: int) -> ForcedReason | None:
        """What keeps the ends of a channel apart, whatever the sizes; None: nothing does."""
        stages, graph = self.stages, self.graph
        # Colors first: they keep the two apart in any grouping, whatever stands between them.
        if stages.color[src] != stages.color[dst]:
            return _explain_difference(graph.steps[src], graph.steps[dst])
        if not self.is_forced(src, dst):
            return None
        # Levels count within a knot alone: knots are apart because no part joins them.
        if stages.knot[src] == stages.knot[dst] and stages.level[src] < stages.level[dst]:
            return CutBetween(self._find_between(dst))
        return KeptApart(graph.ids[src], graph.ids[dst])

    def is_forced(self, src: int, dst: int) -> bool:
        """Whether anything keeps the ends of a channel apart, whatever the sizes."""
        if self.lenient:
            return False
        stages, loop, apart = self.stages, self.graph.loop, self.rules.apart
        return (
            stages.color[src] != stages.color[dst]
            or (stages.knot[src] == stages.knot[dst] and stages.level[src] < stages.level[dst])
            or (bool(apart) and loop[dst] in apart.get(loop[src], ()))
        )

    def find_limit(self, one: Iterable[int], other: Iterable[int]) -> CutReason | None:
        """What the settings have against one group of all these; None: nothing."""
        if not self.rules.apart and len(self.graph.steps) <= self.rules.most_steps:
            return None
        units = [{self.graph.loop[node] for node in nodes} for nodes in (one, other)]
        if any(not units[1].isdisjoint(self.rules.apart.get(unit, ())) for unit in units[0]):
            return "settings of groups"
        if sum(self.rules.size[unit] for unit in units[0] | units[1]) > self.rules.most_steps:
            return GroupLimit(self.rules.most_steps)
        return None

    def _is_connected(self, members: Sequence[int]) -> bool:
        """Whether pipelined channels alone join the members (a loop counts as joined)."""
        parent = {node: self.graph.loop[node] for node in members}
        for node in members:
            for after in self.pipes.get(node, ()):
                if after in parent:
                    join_parts(parent, node, after)
        return len({find_root(parent, node) for node in members}) == 1

    def _explain_members(self, members: Sequence[int]) -> GroupReason:
        if len(members) == 1:
            return "no channel"
        return (JoinedByChannels if self._is_connected(members) else WaitForTheSame)(len(members))

    def _explain_stage(self, members: Sequence[int]) -> GroupReason | None:
        """What stands right below the group, or right above, or beside; None: nothing does."""
        first = members[0]
        if self.stages.blame[first] != NOBODY:
            return ComesAfter(self._find_between(first))
        behind = self._list_behind(members)
        if behind:
            named = tuple(self._describe_between(node, first) for node in behind[:NAMED])
            return ComesBefore(named, len(behind) - len(named))
        return self._find_beside(first)

    def _list_behind(self, members: Sequence[int]) -> list[int]:
        """What waits for the group directly and can share no application with it, in the order of nodes."""
        knot, color = self.stages.knot, self.stages.color
        followers = {after for node in members for after in self.graph.successors[node]}
        return sorted(node for node in followers if knot[node] == knot[members[0]] and color[node] != color[members[0]])

    def _find_beside(self, first: int) -> CannotShare | None:
        """What keeps it from the others that it could be one group with, if they were alike."""
        color, graph = self.stages.color, self.graph
        others = (node for of, node in self.firsts[self.stages.knot[first]].items() if of != color[first])
        causes = (_explain_difference(graph.steps[first], graph.steps[node]) for node in islice(others, NAMED))
        found = tuple(dict.fromkeys(causes))
        return CannotShare(found) if found else None

    def _find_between(self, node: int) -> Between:
        """What stands right below the stage of the node."""
        return self._describe_between(self.stages.blame[node], node)

    def _describe_between(self, between: int, node: int) -> Between:
        """Why ``between`` can share no application with ``node``."""
        if not self.graph.is_step(between):
            return Between(self.graph.ids[between], "task")
        step, other = self.graph.steps[between], self.graph.steps[node]
        if step.application.get(DATAFLOW) != other.application.get(DATAFLOW):
            return Between(step.id, "step of another dataflow")
        if step.isolate:
            return Between(step.id, "isolated step")
        if step.pool != other.pool:
            return Between(step.id, "step in a pool", step.pool)
        return Between(step.id, "step with other settings")


def _explain_difference(src: Step, dst: Step) -> ForcedReason:
    """Why two steps can share no application."""
    # The author's own word comes before settings that happen to differ.
    for step in (src, dst):
        if step.isolate:
            return IsolatedStep(step.id)
    if src.pool != dst.pool:
        return DifferentPools(src.pool, dst.pool)
    keys = src.application.keys() | dst.application.keys()
    differing = sort_naturally(key for key in keys if src.application.get(key) != dst.application.get(key))
    return DifferentSettings(tuple(differing))
