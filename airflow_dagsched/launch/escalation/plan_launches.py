"""A run as its launches would submit it: for whoever prints it.

::

    it fits what is free, or so in parts     its plan: each launch takes its own group of it
    it does not                              what begins now and finds room by itself: there, beside what begins before
                                             it. All others one after another behind these, each where it finds room by
                                             itself; for what finds none on all there is: it waits, or queues
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation.fit_to_free_cluster import find_room_alone, free_all, list_runs, name_waiting
from airflow_dagsched.launch.escalation.reservations import Reservation, reserve_executors, subtract_reservations
from airflow_dagsched.launch.managers.author_sizes import size_as_submitted
from airflow_dagsched.launch.managers.executors import size_executors
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.launch.planning.plan_run import plan_run
from airflow_dagsched.launch.planning.planned import Planned
from airflow_dagsched.model.graph import build_graph
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.passes.recompute_times import retime_plan
from airflow_dagsched.plan.plan_types import Group, Plan

TAKEN = (
    "steps", "begins", "finish_spread_s", "residency", "slots", "limit", "driver", "containers", "hosts",
    "placement", "partitions", "pruned", "unpruned",
)  # fmt: skip
"""What a group has from where its launch finds room, and what it computes; the rest is the run's."""


def plan_launches(known: Facts, reservations: Sequence[Reservation] = ()) -> Planned:
    """The plan of a run with what its launches submit on what is free and not reserved.

    Raises as ``plan_run`` where not even all there is suffices.
    """
    room = replace(known, cluster=subtract_reservations(known.cluster, reservations))
    run = room
    for run in list_runs(room):
        try:
            return plan_run(run)
        except DoesNotFit:
            continue
    return _put_where_room_is(plan_run(free_all(run)), run)


def reserve_at_once(planned: Planned) -> Iterator[Reservation]:
    """What the launches of a run reserve that begin when it begins."""
    waiting = planned.plan.facts.waiting if planned.plan.facts is not None else ()
    for group in planned.plan.groups:
        if group.containers and group.start_s == 0 and group.id not in waiting:
            yield _reserve(group, planned)


def _reserve(group: Group, planned: Planned) -> Reservation:
    name, author = f"{planned.plan.dataflow}.{group.id}", planned.author.get(group.steps[0], {})
    asked = size_executors(group, planned.cluster, settings=planned.settings)
    return reserve_executors(name, size_as_submitted(asked, author, planned.cluster.manager), expires=0.0)


def _put_where_room_is(whole: Planned, room: Facts) -> Planned:
    """``whole``, which is planned on all there is, with what finds room in ``room`` there."""
    held: list[Reservation] = []
    put: dict[str, Group] = {}
    asking = _list_asking(whole.plan)
    for group in asking:
        # Who waits for others finds these ended.
        before = () if group.after else held
        found = find_room_alone(replace(room, cluster=subtract_reservations(room.cluster, before)), group.steps)
        if found is not None:
            put[group.id] = _take_place(group, found.group)
            held.append(_reserve(found.group, found.planned))
    now = frozenset(group.id for group in asking if group.id in put and not group.after)
    waiting = tuple(group.id for group in whole.plan.groups if group.containers and group.id not in put)
    return name_waiting(_put_groups(whole, put, now), waiting)


def _list_asking(made: Plan) -> list[Group]:
    """The groups that ask for executors, in the order in which they choose: what waits for nobody before all others."""
    asking = (group for group in made.groups if group.containers)
    return sorted(asking, key=lambda group: (bool(group.after), group.start_s, group.id))


def _take_place(group: Group, found: Group) -> Group:
    """The group at once, where it was found to have room by itself."""
    time = replace(group.time, compute=found.time.compute)
    taken = {name: getattr(found, name) for name in TAKEN}
    return replace(group, start_s=0.0, end_s=round(time.total_s, DIGITS), time=time, **taken)


def _put_groups(whole: Planned, put: Mapping[str, Group], now: Collection[str]) -> Planned:
    """``whole`` with these groups, ``now`` at once, all others one by one after them: what is free is not known."""
    made, end_s = whole.plan, max((put[name].end_s for name in now), default=0.0)
    groups, late_s = {name: put[name] for name in now}, end_s
    for group in sorted(made.groups, key=lambda group: (group.start_s, group.id)):
        if group.id not in groups:
            # No less late than all before it: an ordinary task may be between them.
            mine = groups[group.id] = _begin_at(put.get(group.id, group), max(end_s, group.start_s + late_s))
            end_s, late_s = mine.end_s, max(late_s, mine.end_s - group.end_s)
    ordered = tuple(groups[group.id] for group in made.groups)
    return replace(whole, plan=retime_plan(made, ordered, build_graph(whole.dataflow), whole.settings))


def _begin_at(group: Group, start_s: float) -> Group:
    return replace(group, start_s=round(start_s, DIGITS), end_s=round(start_s + group.end_s - group.start_s, DIGITS))
