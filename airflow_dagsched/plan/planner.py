"""Dataflow + cluster -> plan: groups are chosen, then passes of one signature each add what they know to the plan.

A plan grows from left to right::

    Plan(digest) ──grouped──> groups, spills ──pruned──> what is left out ──placed──> containers, times, makespan
                 ──moved──> as a policy has it ──trimmed──> no instance without rows ──hosted──> hosts
                 ──answered──> what was asked for, and where it is
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import checked, digest
from airflow_dagsched.model.collector import uncollected
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.model.validate import valid_graph, validate_cluster
from airflow_dagsched.plan.asked import asked_for
from airflow_dagsched.plan.bound import lower_bound
from airflow_dagsched.plan.cost import Priced, name_of
from airflow_dagsched.plan.given import Given, Pass, Stored
from airflow_dagsched.plan.groups import Grouped, Grouping, refuse_clash
from airflow_dagsched.plan.hosts import hosted
from airflow_dagsched.plan.left import pruned, trimmed
from airflow_dagsched.plan.place import placed
from airflow_dagsched.plan.prune.asked import NOTHING_ASKED, Asked
from airflow_dagsched.plan.prune.steps import Selections
from airflow_dagsched.plan.reasons import Reasons
from airflow_dagsched.plan.rules import ruled
from airflow_dagsched.plan.savings import Savings, compared
from airflow_dagsched.plan.search.choice import Choice
from airflow_dagsched.plan.search.choose import choose
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.spills import find_spills
from airflow_dagsched.plan.stages import Stages
from airflow_dagsched.plan.values import Group, Plan
from airflow_dagsched.plan.work import work_of


def as_placed(made: Plan, given: Given) -> Plan:
    """The plan as it is."""
    return made


@uncollected
def plan(
    dataflow: Dataflow,
    cluster: Cluster,
    settings: Settings = DEFAULTS,
    *,
    asked: Asked = NOTHING_ASKED,
    selections: Selections | None = None,
    stored: Sequence[Stored] = (),
    moved: Pass = as_placed,
) -> Plan:
    """The whole plan: a pure function of its arguments, whatever the order of their arrays.

    :param asked: how to prune, and what is known besides dataflow and cluster.
    :param selections: what a lister found of the sources; None: what the dataflow lists of them.
    :param stored: what its steps read besides the datasets of ``dataflow``; each group takes the time to read it, and
        a spill among it the room.
    :param moved: places anew what is placed, as another policy wants it.
    Raises ``InvalidInput`` where one of them breaks a rule, ``DoesNotFit`` where a step is larger than the cluster.
    """
    given = given_of(dataflow, cluster, settings)
    given = replace(given, asked=asked, selections=selections, stored=_stored(stored, given.graph))
    return completed(dataflow, choose(given), moved)


def completed(dataflow: Dataflow, choice: Choice, moved: Pass = as_placed) -> Plan:
    """The whole plan of ``dataflow`` with the groups that were chosen."""
    made = grouped(Plan(dataflow=dataflow.name, digest=digest(dataflow)), choice)
    for step in (pruned, placed, moved, trimmed, hosted, answered):
        made = step(made, choice.given)
    return made


def fitted_groups(dataflow: Dataflow, cluster: Cluster, settings: Settings = DEFAULTS) -> Grouping:
    """The groups that the plan of ``dataflow`` on ``cluster`` has: what a parse takes where a cluster is declared.

    Raises as ``plan`` does.
    """
    made = grouped(Plan(dataflow=dataflow.name, digest=""), choose(given_of(dataflow, cluster, settings)))
    return Grouping(
        tuple(Grouped(id=one.id, steps=one.steps, after=one.after, reason=one.reason) for one in made.groups),
        made.spills,
    )


def _stored(stored: Sequence[Stored], graph: Graph) -> tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]:
    """The datasets by size, names as nodes."""

    def nodes(names: Sequence[str]) -> tuple[int, ...]:
        return tuple(sorted(graph.index[name] for name in names))

    return tuple(sorted((one.bytes, nodes(one.readers), nodes(one.kept_for)) for one in stored))


def given_of(dataflow: Dataflow, cluster: Cluster, settings: Settings) -> Given:
    """What the passes are given, all of it checked."""
    valid, told = validate_cluster(cluster), checked(Settings, settings, "settings")
    declared = valid_graph(dataflow)
    graph, rules = ruled(declared, told)
    given = Given(declared, graph, valid, told, rules, work_of(declared, valid, told))
    bound = lower_bound(given)
    return replace(given, bound=bound.seconds, bound_reason=bound.why)


def grouped(made: Plan, choice: Choice) -> Plan:
    """The plan with its groups and spills, the best of those compared."""
    if choice.best is None or not choice.best.members:
        return made
    return described(made, choice.given, choice, choice.best)


def described(made: Plan, given: Given, choice: Choice, best: Priced) -> Plan:
    """The plan with the groups of ``best``, the reason of each, and what ``choice`` compared."""
    graph = given.graph
    given.work.chosen[tuple(best.home)] = best
    names = {first: name_of(first, best.members, given) for first in best.members}
    refuse_clash(graph, names.values())
    why = Savings.of(choice, best, Reasons.of(graph, given.rules, _stages(choice, best)))
    named = [names.get(node, name) for node, name in enumerate(graph.ids)]
    above: dict[int, list[str]] = {node: [] for node in best.edges}
    for node in sorted(best.edges):
        for after in best.edges[node]:
            above[after].append(named[node])
    return replace(
        made,
        groups=tuple(
            [
                Group(
                    id=names[first],
                    steps=tuple([graph.ids[node] for node in best.members[first]]),
                    after=tuple(above[first]),
                    reason=why.of_group(first),
                )
                for first in _in_order(best)
            ]
        ),
        spills=find_spills(graph, best.home, why.of_cut),
        compared=compared(choice, best),
    )


def answered(made: Plan, given: Given) -> Plan:
    """The plan with what its author asked for, and where it is."""
    return replace(made, asked=asked_for(made, given.declared.dataflow, given.cluster, given.settings))


def _stages(choice: Choice, best: Priced) -> Stages:
    """What forces groups apart; where there is one, nothing does."""
    if len(best.members) == 1:
        return choice.stages
    return choice.fewest()[0]


def _in_order(best: Priced) -> list[int]:
    """The groups as they start: those above come first, since they end before."""
    starts = [(best.spans[first].start_s, best.spans[first].end_s, first) for first in best.members]
    return [first for _, _, first in sorted(starts)]
