"""What a group's instances, and the containers that hold them, ask of the cluster."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, structs
from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.placement.containers.sizing import count_at_once, sum_largest
from airflow_dagsched.plan.needs import Need, measure_padding
from airflow_dagsched.plan.plan_types import Instance, Resources
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import ExecutorSize
from airflow_dagsched.plan.settings import Settings

Residency = Literal["all", "slots"]
AS_NEEDED = ExecutorSize()


class Demand(Struct, frozen=True):
    """The steps of a group with their needs, in the group's order."""

    group: str
    steps: Sequence[Step]
    needs: Sequence[Need]
    residency: Residency
    slots: int
    """Steps side by side, at most."""
    settings: Settings
    deals_disk: bool = False
    """Whether instances are dealt by disk: batch, where workers' disks have limits. Cores come back, disk does not."""
    size: ExecutorSize = AS_NEEDED
    """Of each container, as the author wants it."""

    def find_widest_cores(self) -> int:
        """Of one instance."""
        return max([need.cores for need in self.needs])

    def count_wanted_cores(self) -> int:
        """Cores that the widest steps can keep busy side by side; of all steps, if all are resident."""
        widths = [step.cores * step.parallelism for step in self.steps]
        return sum(widths if self.residency == "all" else heapq.nlargest(self.slots, widths))

    def find_least_cores(self) -> int:
        """Of a container: the author's, or those of the widest instance."""
        return self.size.cores or self.find_widest_cores()

    def measure_container(self, cores: int) -> int:
        """MiB of a container of so many cores, padding included: what any may need, no less than the author wants."""
        memory = self.sum_memory_at_once(cores)
        return max(memory + measure_padding(memory, self.settings), self.size.memory_mb)

    def drop_pins(self) -> Demand:
        """The same, wherever."""
        return replace(self, steps=[structs.replace(step, pinned=()) for step in self.steps])

    def sum_memory_at_once(self, cores: int) -> int:
        """MiB, without padding, that any container of ``cores`` may need: whichever instances it holds."""
        pairs = zip([need.memory_mb for need in self.needs], [step.parallelism for step in self.steps], strict=True)
        return sum_largest(pairs, count_at_once(cores, min([need.cores for need in self.needs])))


def make_demand(group: str, members: Sequence[int], problem: Problem) -> Demand:
    """The demand of the steps ``members``, in this order."""
    steps, arrays = problem.graph.steps, problem.arrays
    # One step that streams never ends, so the slots that the others would wait for never come free: all stay.
    streaming = any(arrays.streaming[node] for node in members)
    return Demand(
        group,
        [steps[node] for node in members],
        [arrays.needs[node] for node in members],
        "all" if streaming else "slots",
        # More slots than steps would say nothing, and change the plan's text.
        min(problem.settings.slots, len(members)),
        problem.settings,
        deals_disk=arrays.room.has_disk_limits and not streaming,
        size=AS_NEEDED if streaming else find_size(members, problem),
    )


def find_size(members: Sequence[int], problem: Problem) -> ExecutorSize:
    """What the author wants of a container for batch steps; not what no worker could ever have, or no step run in."""
    size = problem.run.sizes.get(problem.graph.ids[members[0]], AS_NEEDED) if problem.run.sizes else AS_NEEDED
    if size is AS_NEEDED or problem.cluster.manager == "local":  # one process, whatever is asked for
        return AS_NEEDED
    workers, widest = problem.arrays.workers, max(problem.arrays.needs[node].cores for node in members)
    cores = size.cores if any(worker.cores >= size.cores >= widest for worker in workers) else 0
    memory = size.memory_mb if any(worker.memory_mb >= size.memory_mb for worker in workers) else 0
    return ExecutorSize(cores, memory)


class Share(Struct, frozen=True):
    """The instances dealt to one container, with their needs."""

    instances: list[Instance]
    needs: list[Need]

    def sum_required(self, demand: Demand, cores: int) -> Resources:
        """What the container needs, padding included; ``cores``: what it has, in slots residency."""
        held = sum([need.cores for need in self.needs])
        if demand.residency == "all" or not self.needs:
            memory = sum([need.memory_mb for need in self.needs])
        else:
            held = min(cores, held)
            count = count_at_once(cores, min([need.cores for need in self.needs]))
            # Which instances meet in a container is Spark's choice: the largest that its cores run at once are the
            # worst.
            memory = sum(heapq.nlargest(count, [need.memory_mb for need in self.needs]))
        # Padding once, on the sum: Spark's memory overhead is a share of the executor's memory, not of a task's.
        return Resources(cores=held, memory_mb=memory + measure_padding(memory, demand.settings), disk_mb=self.disk_mb)

    @property
    def disk_mb(self) -> int:
        """An instance keeps its disk to the end of the group."""
        return sum([need.disk_mb for need in self.needs])


def deal_instances(demand: Demand, workers: Sequence[str]) -> list[Share]:
    """Deal all instances to containers on ``workers`` (one entry a container): each to the one with fewest cores dealt.

    Where disk is dealt, the largest first, each to the one with the least disk dealt: in whichever order steps start.
    Pinned steps are dealt first, to the containers on their workers; there must be one.
    """
    if len(workers) == 1:
        # One container holds everything: no heap is needed to find it.
        return [_deal_all(demand)]
    shares = [Share([], []) for _ in workers]
    load = [(0, box) for box in range(len(workers))]
    order = _order_steps(demand)
    for at in (at for at in order if demand.steps[at].pinned):
        allowed = [entry for entry in load if workers[entry[1]] in demand.steps[at].pinned]
        others = [entry for entry in load if workers[entry[1]] not in demand.steps[at].pinned]
        # Pinned steps first: dealt last, they could find their few workers full of what might be anywhere.
        heapq.heapify(allowed)
        _deal_step(demand, at, allowed, shares)
        # Not a heap any more: the next step's workers are others, so it is made anew.
        load = allowed + others
    heapq.heapify(load)
    for at in order:
        if not demand.steps[at].pinned:
            _deal_step(demand, at, load, shares)
    return shares


def _order_steps(demand: Demand) -> list[int]:
    """In which the steps are dealt."""
    order = list(range(len(demand.steps)))
    return (
        sorted(order, key=lambda at: (-demand.needs[at].disk_mb, demand.steps[at].id)) if demand.deals_disk else order
    )


def _deal_all(demand: Demand) -> Share:
    """All instances, pinned ones first."""
    rows = list(zip(demand.steps, demand.needs, strict=True))
    if any(step.pinned for step in demand.steps):
        rows.sort(key=lambda row: not row[0].pinned)  # stable: as dealing to several would have it
    return Share(
        [(step.id, index) for step, _ in rows for index in range(step.parallelism)],
        [need for step, need in rows for _ in range(step.parallelism)],
    )


def _deal_step(demand: Demand, at: int, load: list[tuple[int, int]], shares: list[Share]) -> None:
    """Deal the instances of step ``at`` to the containers in ``load``: a heap of (cores or disk dealt, container)."""
    step, need = demand.steps[at], demand.needs[at]
    weight = need.disk_mb if demand.deals_disk else need.cores
    for index in range(step.parallelism):
        dealt, box = load[0]
        share = shares[box]
        share.instances.append((step.id, index))
        share.needs.append(need)
        # Ties go to the first container, for the pair is compared whole: equal inputs are dealt equally.
        heapq.heapreplace(load, (dealt + weight, box))
