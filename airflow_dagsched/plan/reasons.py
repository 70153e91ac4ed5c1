"""Why steps are in one group, or are kept apart: one sentence each, with the names of who is to blame."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.order import natural_sort
from airflow_dagsched.plan.stages import NOBODY, Stages


def group_reason(graph: Graph, stages: Stages, members: Sequence[int], *, alone: bool) -> str:
    """Why these steps are one group; ``alone``: there is no other."""
    if alone:
        return "nothing keeps the steps apart"
    if any(graph.steps[node].isolate for node in members):
        return "isolated by its author"
    if stages.knot[members[0]] in stages.cut:
        return _stage_reason(graph, stages, members[0])
    if len(members) == 1:
        return "no pipelined channel joins it to a step it could share an application with"
    if _connected(graph, members):
        return f"pipelined channels join its {len(members)} steps"
    return f"its {len(members)} steps wait for the same, or would wait for each other if they were apart"


def cut_reason(graph: Graph, stages: Stages, src: int, dst: int) -> str:
    """Why the pipelined channel from step ``src`` to step ``dst`` is cut."""
    if stages.color[src] != stages.color[dst]:
        return _color_reason(graph.steps[src], graph.steps[dst])
    return f"{_who(graph, stages, dst)} stands between"


def _stage_reason(graph: Graph, stages: Stages, node: int) -> str:
    if stages.blame[node] == NOBODY:
        return "what comes before all that stands between the steps"
    return f"{_who(graph, stages, node)} stands between it and earlier steps"


def _who(graph: Graph, stages: Stages, node: int) -> str:
    blamed = stages.blame[node]
    if not graph.is_step(blamed):
        return f"ordinary task {graph.ids[blamed]!r}"
    step = graph.steps[blamed]
    return f"step {step.id!r}, {'isolated by its author,' if step.isolate else 'with other application settings,'}"


def _color_reason(src: Step, dst: Step) -> str:
    """Names of settings only: a value may be a secret."""
    for step in (src, dst):
        if step.isolate:
            return f"step {step.id!r} is isolated by its author"
    keys = src.application.keys() | dst.application.keys()
    differing = natural_sort(key for key in keys if src.application.get(key) != dst.application.get(key))
    return f"different application settings: {', '.join(differing)}"


def _connected(graph: Graph, members: Sequence[int]) -> bool:
    """Whether pipelined channels alone join the members (a loop counts as joined)."""
    owner = {node: graph.loop[node] for node in members}
    reached, queue = {members[0]}, [members[0]]
    ties: dict[int, list[int]] = {}
    for node in members:
        ties.setdefault(owner[node], []).append(node)
        ties.setdefault(node, []).append(owner[node])
    for node in members:
        for after in graph.successors[node]:
            if after in owner and (node, after) in graph.pipelined:
                ties[node].append(after)
                ties[after].append(node)
    for node in queue:
        fresh = [other for other in ties[node] if other not in reached]
        reached.update(fresh)
        queue += fresh
    return len(reached) == len(members)
