"""Why steps are in one group, or are kept apart: one sentence each, with the names of who is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import natural_sort
from airflow_dagsched.plan.colors import TASK
from airflow_dagsched.plan.parts import find, join
from airflow_dagsched.plan.rules import Rules
from airflow_dagsched.plan.stages import NOBODY, Stages
from airflow_dagsched.plan.words import count


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

    def of_group(self, members: Sequence[int], *, alone: bool) -> str:
        """Why these steps are one group; ``alone``: there is no other."""
        graph = self.graph
        if alone:
            return "nothing keeps the steps apart"
        if any(graph.steps[node].isolate for node in members):
            return "isolated by its author"
        if self.stages.knot[members[0]] in self.stages.cut:
            return self._of_stage(members[0])
        if len(members) == 1:
            return "no pipelined channel joins it to a step it could share an application with"
        if self._connected(members):
            return f"pipelined channels join its {len(members)} steps"
        return f"its {len(members)} steps wait for the same, or would wait for each other if they were apart"

    def of_cut(self, src: int, dst: int) -> str:
        """Why the pipelined channel from step ``src`` to step ``dst`` is cut, when it had to be."""
        return self.forced(src, dst) or "the settings keep steps apart, or allow no more in a group"

    def forced(self, src: int, dst: int) -> str:
        """What keeps the ends of a channel apart, whatever the sizes; empty: nothing does."""
        stages, graph = self.stages, self.graph
        if stages.color[src] != stages.color[dst]:
            return _of_color(graph.steps[src], graph.steps[dst])
        if not self.parts(src, dst):
            return ""
        if stages.knot[src] == stages.knot[dst] and stages.level[src] < stages.level[dst]:
            return f"{self._who(dst)} stands between"
        return f"the settings keep {graph.ids[src]!r} and {graph.ids[dst]!r} apart"

    def parts(self, src: int, dst: int) -> bool:
        """Whether anything keeps the ends of a channel apart, whatever the sizes."""
        if self.lenient:
            return False
        stages, loop, apart = self.stages, self.graph.loop, self.rules.apart
        return (
            stages.color[src] != stages.color[dst]
            or (stages.knot[src] == stages.knot[dst] and stages.level[src] < stages.level[dst])
            or (bool(apart) and loop[dst] in apart.get(loop[src], ()))
        )

    def limits(self, one: Iterable[int], other: Iterable[int]) -> str:
        """What the settings have against one group of all these; empty: nothing."""
        if not self.rules.apart and len(self.graph.steps) <= self.rules.most_steps:
            return ""
        units = [{self.graph.loop[node] for node in nodes} for nodes in (one, other)]
        if any(not units[1].isdisjoint(self.rules.apart.get(unit, ())) for unit in units[0]):
            return "the settings keep steps of the two groups apart"
        if sum(self.rules.size[unit] for unit in units[0] | units[1]) > self.rules.most_steps:
            return f"the settings allow {count(self.rules.most_steps, 'step')} a group"
        return ""

    def _connected(self, members: Sequence[int]) -> bool:
        """Whether pipelined channels alone join the members (a loop counts as joined)."""
        parent = {node: self.graph.loop[node] for node in members}
        for node in members:
            for after in self.pipes.get(node, ()):
                if after in parent:
                    join(parent, node, after)
        return len({find(parent, node) for node in members}) == 1

    def _of_stage(self, node: int) -> str:
        if self.stages.blame[node] == NOBODY:
            return "what comes before all that stands between the steps"
        return f"{self._who(node)} stands between it and earlier steps"

    def _who(self, node: int) -> str:
        blamed = self.stages.blame[node]
        if not self.graph.is_step(blamed):
            return f"ordinary task {self.graph.ids[blamed]!r}"
        step = self.graph.steps[blamed]
        return f"step {step.id!r}, {'isolated by its author,' if step.isolate else 'with other application settings,'}"


def _of_color(src: Step, dst: Step) -> str:
    """Names of settings only: a value may be a secret."""
    for step in (src, dst):
        if step.isolate:
            return f"step {step.id!r} is isolated by its author"
    if src.pool != dst.pool:
        return f"different pools: {src.pool!r}, {dst.pool!r}"
    keys = src.application.keys() | dst.application.keys()
    differing = natural_sort(key for key in keys if src.application.get(key) != dst.application.get(key))
    return f"different application settings: {', '.join(differing)}"
