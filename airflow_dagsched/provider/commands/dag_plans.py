"""The plans of a DAG's dataflows, as their launches come to share the cluster.

    collect ──> receive     one behind the other: each has what is free; what collect writes is expected where it runs
    collect     report      side by side: whose launches come first choose, the others take what these have left

Of dataflows that begin at one moment the one that is first in the DAG file is planned first; whichever launch comes
first on the cluster, the rule is the same.
"""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.escalation.plan_launches import plan_launches, reserve_at_once
from airflow_dagsched.launch.escalation.reservations import Reservation
from airflow_dagsched.launch.planning.expected_rows import expect_rows
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.launch.planning.planned import Planned
from airflow_dagsched.provider.clusters.plan_facts import read_asked_run
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.clusters.reservations import Reservations
from airflow_dagsched.provider.commands.preview import add_run_inputs
from airflow_dagsched.provider.spec.outlets import list_outlets
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir

if TYPE_CHECKING:
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow


class Known(Struct, frozen=True):
    """What a dataflow is planned by."""

    facts: Facts
    master: str
    held: Sequence[Reservation]
    """By launches that are just starting."""
    reads: Mapping[str, Sequence[str]]
    """Step -> the tables that its author says it reads."""


def plan_flow(flow: SparkDataflow, args: Namespace) -> Planned:
    """The plan of a dataflow, as if it were the only one of its DAG, with the facts that the arguments ask for."""
    known = _gather(flow, args)
    return plan_launches(known.facts, known.held)


def plan_flows(flows: Sequence[SparkDataflow], args: Namespace) -> list[Planned]:
    """The plans of all of them, in their order, with what they are to each other."""
    orders = _Orders.of(flows)
    known, made = [_gather(flow, args) for flow in flows], dict[int, Planned]()
    for at in orders.sort():
        facts = known[at].facts
        for before in (one for one in made if orders.is_behind(at, one)):
            facts = expect_rows(facts, known[at].reads, made[before], known[before].facts.history)
        beside = [one for one in made if orders.is_beside(at, one) and known[one].master == known[at].master]
        made[at] = _plan_beside(facts, known[at].held, [made[one] for one in beside])
    return [made[at] for at in range(len(flows))]


def _plan_beside(facts: Facts, held: Sequence[Reservation], others: Iterable[Planned]) -> Planned:
    """On what the launches of others have left that begin at the same moment, if one of these does, too."""
    alone = plan_launches(facts, held)
    taken = {other.plan.dataflow: tuple(reserve_at_once(other)) for other in others}
    if not any(taken.values()) or not any(group.start_s == 0 for group in alone.plan.groups if group.containers):
        return alone
    names = tuple(name for name, reserved in taken.items() if reserved)
    told = replace(facts, origin=replace(facts.origin, beside=names))
    return plan_launches(told, [*held, *(one for reserved in taken.values() for one in reserved)])


class _Orders(Struct, frozen=True):
    """Which dataflows wait for which: by tasks of their DAG, or since their DAG runs once an asset is written."""

    dags: Sequence[str]
    """Of each dataflow."""
    above: Sequence[frozenset[int]]
    """Of each dataflow those that some task of it, or its DAG, waits for."""

    @classmethod
    def of(cls, flows: Sequence[SparkDataflow]) -> _Orders:
        tasks = [_list_tasks(flow) for flow in flows]
        below = [_find_below(flow.dag, mine) for flow, mine in zip(flows, tasks, strict=True)]
        dags = [flow.dag.dag_id for flow in flows]
        pairs = range(len(flows))
        written = [{asset.uri for asset in list_outlets(flow.spec.steps.values())} for flow in flows]
        wanted = [set(_list_assets(getattr(flow.dag.timetable, "asset_condition", None))) for flow in flows]

        def waits(at: int, up: int) -> bool:
            return bool(below[up] & tasks[at] if dags[up] == dags[at] else written[up] & wanted[at])

        return cls(dags, [frozenset(up for up in pairs if up != at and waits(at, up)) for at in pairs])

    def is_behind(self, one: int, other: int) -> bool:
        """Whether ``one`` waits for ``other``, and ``other`` for none of it."""
        return other in self.above[one] and one not in self.above[other]

    def is_beside(self, one: int, other: int) -> bool:
        """Whether they are of one DAG, and neither waits for the other."""
        return self.dags[one] == self.dags[other] and other not in self.above[one] and one not in self.above[other]

    def sort(self) -> Iterator[int]:
        """Each behind those that it waits for, else as in the DAG's file."""
        seen: set[int] = set()

        def visit(at: int) -> Iterator[int]:
            if at not in seen:
                seen.add(at)
                for up in sorted(self.above[at]):
                    yield from visit(up)
                yield at

        for at in range(len(self.dags)):
            yield from visit(at)


def _list_assets(condition: Any) -> Iterator[str]:
    """URIs of the assets that a DAG is scheduled by, whether all of them have to be there or any."""
    if hasattr(condition, "uri"):
        yield condition.uri
    for each in getattr(condition, "objects", ()):
        yield from _list_assets(each)


def _list_tasks(flow: SparkDataflow) -> frozenset[str]:
    """Ids of its mirrors and launch tasks."""
    return frozenset((*(mirror.task_id for mirror in flow.steps.values()), *(one.task_id for one in flow.launches())))


def _find_below(dag: Any, tasks: Iterable[str]) -> set[str]:
    """Ids of what waits for any of the tasks."""
    found: set[str] = set()
    queue = list(tasks)
    while queue:
        new = dag.task_dict[queue.pop()].downstream_task_ids - found
        found |= new
        queue += new
    return found


def _gather(flow: SparkDataflow, args: Namespace) -> Known:
    hook, conf = PlannerHook(args.conn_id or flow.declared.conn_id), _parse_conf(args.conf)
    facts = hook.gather_facts(flow, live=args.live, asked=read_asked_run(conf))
    held = Reservations(find_default_work_dir(), hook.master()).peek(time.time()) if args.live else ()
    if args.date:
        facts = add_run_inputs(facts, flow, _parse_date(args.date), hook, conf)
    return Known(facts, hook.master(), held, dict(_list_reads(flow)))


def _list_reads(flow: SparkDataflow) -> Iterator[tuple[str, list[str]]]:
    for name, step in flow.spec.steps.items():
        yield name, [table.key for table in step.declared.read_tables or ()]


def _parse_date(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput("airflow dagsched", "--date", f"{text!r} is no ISO 8601 date or time") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _parse_conf(text: str | None) -> Mapping[str, Any]:
    """The configuration of a run, as ``airflow dags trigger --conf`` takes it."""
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise InvalidInput("airflow dagsched", "--conf", f"is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput("airflow dagsched", "--conf", "must be a JSON object")
    return found
