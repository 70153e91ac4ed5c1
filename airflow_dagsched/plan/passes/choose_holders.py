"""On which workers groups run that could leave some out: the fewest that hold their data, all that do, or any.

3 blocks with 2 replicas each, one core a worker        fewest   w2, in 3 waves       38 s
w0 w2 | w1 w2 | w0 w2, and w3, which holds none         holders  w0 w1 w2, in one     18 s   <- chosen
                                                        any      w3 too, from afar    18 s

What ends sooner is taken, then what reads less from afar where a policy places near the data, then what holds fewer
core-seconds, as groupings are priced; of equals the fewest workers. Those that hold nothing are kept only where the
run ends sooner by ``FAR``: reading from elsewhere is not in these seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.passes.apply_policy import apply_policy
from airflow_dagsched.plan.passes.exclusions import apply_exclusions, exclude_pruned, find_first_step
from airflow_dagsched.plan.passes.far_bytes import sum_far_bytes
from airflow_dagsched.plan.passes.schedule_groups import schedule_groups
from airflow_dagsched.plan.plan_types import Group, Pruned
from airflow_dagsched.plan.reasons.pruning import NoRoomForGroup, SoonerElsewhere, WorkerObjection
from airflow_dagsched.plan.report.sentences import say_workers_kept

FAR = 0.8
"""The share by which a run on the holders must be longer for data to be read from other hosts."""
Groups = Sequence[Group]
Price = tuple[float, float]
"""Makespan, and core-seconds held."""


class _Way(Struct, frozen=True):
    """A group with some workers left out, or none, and how long it computes on the others."""

    group: Group
    compute_s: float = 0.0
    is_far: bool = False
    """Whether it may be on workers that hold none of its data."""

    @property
    def weight(self) -> float:
        """Seconds, longer where the data is far."""
        return _lengthen(self.compute_s, self.is_far)


def _lengthen(seconds: float, is_far: bool) -> float:
    """By what reading from other hosts may take."""
    return seconds * (1 + FAR) if is_far else seconds


def leaves_workers_out(group: Group) -> bool:
    """Whether some worker is kept out of it."""
    return any(one.what == "worker" for one in group.pruned)


def choose_holders(draft: Draft, fewest: Groups, holders: Groups) -> Groups:
    """The groups, each with the workers it leaves out, as they end soonest together.

    :param fewest: without all workers but the fewest that hold the data; ``holders``: without those that hold none.
    """
    anywhere = [_keep_workers(group) for group in fewest]
    sized = [_measure_ways(draft, groups) for groups in (fewest, holders, anywhere)]
    ways = [_list_ways(one, *found) for one, found in zip(fewest, zip(*sized, strict=True), strict=True)]
    candidates = list(_list_candidates(ways))
    grouped = [[way.group for way in each] for each in candidates]
    distinct = [at for at, groups in enumerate(grouped) if groups not in grouped[:at]]
    if len(distinct) == 1:
        return grouped[0]
    prices = {at: _price_groups(draft, grouped[at]) for at in distinct}
    spans = {at: _weigh(prices[at], candidates[at]) for at in distinct}
    least = min(spans.values())
    soonest = [at for at in distinct if spans[at] == least]
    # The first of equals: those with the fewest workers come first.
    best = (
        min(soonest, key=lambda at: (_sum_far_bytes(draft, grouped[at]), prices[at][1])) if soonest[1:] else soonest[0]
    )
    told = SoonerElsewhere(*prices[0], *prices[best])
    pairs = zip(grouped[best], grouped[0], strict=True)
    return [_explain_kept(group, told) if leaves_workers_out(first) else group for group, first in pairs]


def _measure_ways(draft: Draft, groups: Groups) -> list[_Way | DoesNotFit]:
    """Of each group, on the workers it may be on."""
    evaluator = Evaluator(apply_exclusions(draft.problem, groups), draft.evaluator.start_order)
    return [_measure_way(group, evaluator) for group in groups]


def _measure_way(group: Group, evaluator: Evaluator) -> _Way | DoesNotFit:
    graph, idle_steps = evaluator.problem.graph, evaluator.problem.exclusions.idle_steps
    running = [graph.index[step] for step in group.steps if graph.index[step] not in idle_steps]
    if not running:
        return _Way(group)
    try:
        shape = evaluator.size_where_allowed(find_first_step(group, graph), group.id, running)
    except DoesNotFit as refused:
        return refused
    return _Way(group, round(shape.schedule.compute_s, DIGITS))


def _list_ways(
    one: Group, fewest: _Way | DoesNotFit, holders: _Way | DoesNotFit, anywhere: _Way | DoesNotFit
) -> list[_Way]:
    """Those that fit, the fewest workers first; any worker if the others don't: that is never refused here."""
    if not leaves_workers_out(one):
        return [_Way(one)]
    found = [way for way in (fewest, holders) if isinstance(way, _Way)]
    whole = replace(anywhere, is_far=True) if isinstance(anywhere, _Way) else _Way(_keep_workers(one), is_far=True)
    if not found and isinstance(holders, DoesNotFit):
        return [_Way(_explain_whole(whole.group, NoRoomForGroup(holders)))]
    return [*found, whole]


def _list_candidates(ways: Sequence[Sequence[_Way]]) -> Iterator[Sequence[_Way]]:
    """All on the fewest workers, each where it computes soonest, all on those that hold the data, all on any."""
    yield [each[0] for each in ways]
    yield [min(each, key=lambda way: way.weight) for each in ways]
    yield [(each[:-1] or each)[-1] for each in ways]  # any worker stands last
    yield [each[-1] for each in ways]


def _weigh(price: Price, ways: Sequence[_Way]) -> float:
    """Seconds, longer where some of the data may be far."""
    return _lengthen(price[0], any(way.is_far for way in ways))


def _price_groups(draft: Draft, groups: Groups) -> Price:
    """As they would be scheduled."""
    plan = schedule_groups(exclude_pruned(draft.replace_groups(groups))).plan
    held = sum(sum(box.cores for box in group.containers) * group.time.total_s for group in plan.groups)
    return plan.makespan_s, round(held, DIGITS)


def _sum_far_bytes(draft: Draft, groups: Groups) -> float:
    """What they would read from afar as their policy places them; none of what it refuses is near."""
    try:
        placed = apply_policy(schedule_groups(exclude_pruned(draft.replace_groups(groups))))
    except DoesNotFit:
        return math.inf
    return sum_far_bytes(placed.plan, draft.problem)


def _keep_workers(group: Group) -> Group:
    """The group on any worker; partitions and steps stay left out."""
    if not leaves_workers_out(group):
        return group
    return replace(group, pruned=tuple(one for one in group.pruned if one.what != "worker"))


def _explain_kept(group: Group, told: SoonerElsewhere) -> Group:
    """Why the group has all workers, if it has."""
    return group if leaves_workers_out(group) else _explain_whole(group, told)


def _explain_whole(group: Group, objection: WorkerObjection) -> Group:
    stays = Pruned(what="worker", id=group.id, reason=say_workers_kept(objection))
    return replace(group, unpruned=(*group.unpruned, stays))
