"""What forces steps into different groups, whatever their sizes, with the names of who is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    ComesAfter,
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


class Reasons(Struct, frozen=True):
    """What forces groups apart: colors, ordinary tasks in between, the settings."""

    graph: Graph
    rules: Rules
    stages: Stages
    pipes: dict[int, list[int]]
    """Who is handed rows inside the application, if it is in it."""
    lenient: bool
    """Whether no rule keeps any two steps apart, as of most dataflows."""

    @classmethod
    def of(cls, graph: Graph, rules: Rules, stages: Stages) -> Reasons:
        """Look up who is handed rows."""
        pipes: dict[int, list[int]] = {}
        for dataset in graph.datasets:
            pipes.setdefault(dataset.src, []).extend(dataset.pipelined)
        colors = {color for color in stages.color if color != TASK}
        lenient = len(colors) < 2 and not stages.cut and not rules.apart
        return cls(graph, rules, stages, pipes, lenient)

    def explain_group(self, members: Sequence[int], *, is_only: bool) -> GroupReason:
        """Why these steps are one group; ``is_only``: there is no other."""
        graph = self.graph
        if is_only:
            return "only group"
        if any(graph.steps[node].isolate for node in members):
            return "isolated"
        if self.stages.knot[members[0]] in self.stages.cut:
            return self._explain_stage(members[0])
        if len(members) == 1:
            return "no channel"
        if self._is_connected(members):
            return JoinedByChannels(len(members))
        return WaitForTheSame(len(members))

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

    def _explain_stage(self, node: int) -> GroupReason:
        if self.stages.blame[node] == NOBODY:
            return "before what stands between"
        return ComesAfter(self._find_between(node))

    def _find_between(self, node: int) -> Between:
        """What stands right below the stage of the node."""
        blamed = self.stages.blame[node]
        if not self.graph.is_step(blamed):
            return Between(self.graph.ids[blamed], "task")
        step = self.graph.steps[blamed]
        if step.application.get(DATAFLOW) != self.graph.steps[node].application.get(DATAFLOW):
            return Between(step.id, "step of another dataflow")
        return Between(step.id, "isolated step" if step.isolate else "step with other settings")


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
