"""The cost model: what a grouping of the steps would take, by simulating it.

A group takes, one after another: start of the application, reading each dataset it takes from earlier
groups (once, however many of its steps read it), computing under its residency, writing each dataset that
later groups read (once, however many they are). A plan takes what the time line says: see ``timeline``.
Groupings are compared by makespan, then core-seconds held, then bytes spilled, then number of groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.units import DIGITS, MIB
from airflow_dagsched.plan.costing.capacity import FreeCapacity, SpillCapacity
from airflow_dagsched.plan.costing.evaluated_grouping import Cost, EvaluatedGrouping, GroupOf, name_group
from airflow_dagsched.plan.costing.executor_shape import ExecutorShape, size_group
from airflow_dagsched.plan.costing.group_sizes import GroupSizes
from airflow_dagsched.plan.costing.timeline import Circular, Job, Span, simulate_timeline
from airflow_dagsched.plan.costing.traffic import Traffic, list_stored_spills, measure_traffic
from airflow_dagsched.plan.problem.exclusions import NOTHING_EXCLUDED
from airflow_dagsched.plan.problem.partition import find_edges_between
from airflow_dagsched.plan.problem.problem import Problem

HOUR_S = 3600.0
HOPELESS = 600.0  # exp overflows a float at 710

Members = dict[int, list[int]]


class Evaluator:
    """Evaluates groupings of one problem whose steps start in one order; owns all that evaluations look up twice."""

    def __init__(self, problem: Problem, start_order: Sequence[int] | None = None) -> None:
        """``start_order``: all nodes, topological; None: the longest tail first."""
        self.problem = problem
        self.start_order = problem.arrays.longest_first if start_order is None else start_order
        self._sizes = GroupSizes(problem)

    def reorder_starts(self, start_order: Sequence[int]) -> Evaluator:
        """An evaluator of the same problem with another order; they share what is known of groups."""
        other = Evaluator(self.problem, start_order)
        # A shape depends on the list of its steps alone: lists are the keys, so any order may share them.
        other._sizes = self._sizes
        return other

    def evaluate_grouping(
        self, group_of: GroupOf, *, failures: bool = True, turns: Mapping[int, int] | None = None
    ) -> EvaluatedGrouping:
        """What ``group_of``, which obeys the rules, would take.

        Raises ``DoesNotFit``, and ``InvalidInput`` with a cycle where groups wait for each other: those would never
        start.

        :param failures: each group takes what it takes on average with the failures that the settings expect.
        :param turns: of what is ready, in which order it starts; see ``timeline``.
        """
        problem = self.problem
        members = self.list_members(group_of)
        # Edges that lead back in a loop stay inside a group: two steps of a loop always share one.
        between = find_edges_between(problem.graph, group_of)
        edges = {node: between[node] for node in (*members, *range(len(problem.graph.steps), len(problem.graph.ids)))}
        shapes = self._size_groups(members, edges)
        traffic = measure_traffic(group_of, problem)
        jobs = self._time_jobs(members, shapes, traffic, failures=failures)
        spans = self._simulate_launches(members, jobs, edges, self._limit_spills(group_of, traffic), turns)
        cost = Cost(
            # Rounded before they are compared: sums of the same seconds in another order would make ties into
            # differences.
            round(max([span.end_s for span in spans.values()], default=0.0), DIGITS),
            round(sum([shape.held_cores * jobs[first].seconds for first, shape in shapes.items()]), DIGITS),
            traffic.spilled_bytes,
            len(members),
        )
        return EvaluatedGrouping(group_of, members, edges, shapes, traffic, jobs, spans, cost)

    def list_members(self, group_of: GroupOf) -> Members:
        """The steps of each group, in the order in which they start."""
        count = len(self.problem.graph.steps)
        members: Members = {}
        for node in self.start_order:
            if node < count:  # ordinary tasks are numbered behind the steps, and belong to no group
                members.setdefault(group_of[node], []).append(node)
        return members

    def size_group(self, name: str, steps: Sequence[int]) -> ExecutorShape:
        """The shape of a group of these steps on any workers; raises ``DoesNotFit``."""
        return self._sizes.find_shape(name, steps)

    def size_where_allowed(self, first: int, name: str, running: Sequence[int]) -> ExecutorShape:
        """The shape of the group with first step ``first``, of which ``running`` is left, on workers it may be on.

        Raises ``DoesNotFit``, of a group with workers left out if it does not fit on the others.
        """
        allowed = self.problem.exclusions.allowed_workers.get(first)
        if allowed is None:
            return self._sizes.find_shape(name, running)
        there = replace(self.problem, arrays=self.problem.arrays.limit_workers(allowed))
        # Sized for these workers, the group must not be moved by first fit to one that it was barred from.
        return size_group(name, running, there)._replace(pinned=True)

    def _size_groups(self, members: Members, edges: Mapping[int, Sequence[int]]) -> dict[int, ExecutorShape]:
        """Of the groups with steps that are run; those of one step are looked up at once."""
        exclusions, ids = self.problem.exclusions, self.problem.graph.ids
        # With exclusions a group may be barred from workers: what is known of its step alone then says nothing.
        whole = exclusions is NOTHING_EXCLUDED
        known = self._sizes.of_step if whole else {}
        running = members if whole else self._drop_idle(members)
        shapes = {}
        for first, steps in running.items():
            shape = known.get(steps[0]) if len(steps) == 1 else None
            shapes[first] = shape or self.size_where_allowed(first, name_group(first, members, ids), steps)
        return shapes | self._sizes.share_cores(running, edges, shapes)

    def _drop_idle(self, members: Members) -> Members:
        """The steps of each group that are run, of groups with any."""
        idle_steps = self.problem.exclusions.idle_steps
        running = {first: [node for node in steps if node not in idle_steps] for first, steps in members.items()}
        return {first: steps for first, steps in running.items() if steps}

    def _time_jobs(
        self, members: Members, shapes: Mapping[int, ExecutorShape], traffic: Traffic, *, failures: bool
    ) -> dict[int, Job]:
        """The groups, then the ordinary tasks."""
        problem, read, written = self.problem, traffic.read, traffic.written
        start, rate = problem.cluster.application_start_s, problem.cluster.spill_mb_s * MIB
        jobs = {
            first: Job(start + read[first] / rate + shape.schedule.compute_s + written[first] / rate, shape)
            for first, shape in shapes.items()
        }
        if failures and problem.settings.failures_per_hour:
            expected = problem.settings.failures_per_hour / HOUR_S
            # The whole of a group is done again when it fails: long groups pay more than in proportion, so a cut can
            # pay.
            jobs = {first: Job(expect_seconds(job.seconds, expected), job.shape) for first, job in jobs.items()}
        if len(shapes) < len(members):
            # A group of which nothing is left has no application, yet others still wait for it: it takes no time and
            # no room.
            jobs = {first: jobs.get(first, Job(0.0, None)) for first in members}
        runtime_s = problem.arrays.runtime_s
        for node in range(len(problem.graph.steps), len(problem.graph.ids)):
            jobs[node] = Job(runtime_s[node], None)
        return jobs

    def _limit_spills(self, group_of: GroupOf, traffic: Traffic) -> SpillCapacity | None:
        """Room for spills; None where there is room for all."""
        # Counted in bytes from here on: MiB would round small datasets away.
        limit = self.problem.cluster.spill_mb
        if limit is None:
            return None
        return SpillCapacity((*traffic.in_flight, *list_stored_spills(group_of, self.problem)), limit * MIB)

    def _simulate_launches(
        self,
        members: Members,
        jobs: Mapping[int, Job],
        edges: Mapping[int, Sequence[int]],
        spills: SpillCapacity | None,
        turns: Mapping[int, int] | None,
    ) -> dict[int, Span]:
        try:
            room = FreeCapacity(self.problem.arrays.workers, self.problem.settings.applications)
            return simulate_timeline(jobs, edges, room, spills, turns=turns)
        except Circular as circle:
            raise _refuse_circle(circle, members, self.problem) from None


def expect_seconds(seconds: float, rate: float) -> float:
    """Mean time to get through ``seconds`` of work that starts anew at each failure, ``rate`` failures a second.

    Failures as a Poisson process (Young 1974; Daly 2006), the restart itself included in the work. More than
    ``HOPELESS`` failures to expect are told as so many: sums and products of what is larger would be infinite.
    """
    # expm1, for exp(x) - 1 loses all digits where failures are rare and work is short.
    return math.expm1(min(rate * seconds, HOPELESS)) / rate if rate else seconds


def _refuse_circle(circle: Circular, members: Members, problem: Problem) -> InvalidInput:
    ids = problem.graph.ids
    names = [name_group(job, members, ids) if job in members else ids[job] for job in circle.jobs]
    where = f"dataflow {problem.graph.dataflow.name!r}"
    return InvalidInput(where, "groups", f"{' -> '.join(names)} wait for each other: none of them can start")
