"""What a policy placed for good holds no more than it need: no smaller container would, on the same workers.

w1 [aaaaaa      ]  w2 [bb          ]     2 of 6 cores hold 12 for 8 instances; 4 of 2 hold 8

Cores are counted, and memory at the cluster's own rate of MiB a core. What a smaller container would need is told as if
each held the largest instances, and all copies of state on its worker: so what is said to be too much is.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from airflow_dagsched.model.dataflow import Step
from airflow_dagsched.plan.checking.facts.free_capacity import measure_free
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.plan_types import Container, Group
from airflow_dagsched.plan.settings import Settings

MARGIN = 1e-6
"""Of a core: what is rounded differently is no more."""


def check_held_sizes(facts: Facts) -> Iterator[Violation]:
    """Of groups that nothing runs beside: what others leave is not told anew."""
    for at, group in enumerate(facts.plan.groups):
        if group.residency == "all" and group.placement and group.progress == "planned" and group.executors:
            alone = all(
                at == other or one.end_s <= group.start_s or group.end_s <= one.start_s
                for other, one in enumerate(facts.plan.groups)
            )
            if alone and not _is_as_offered(group) and group.driver.worker is None:
                yield from _check_group(facts, group)


def _is_as_offered(group: Group) -> bool:
    """Whether containers ask for more than any of them needs: they are as large as their workers offer."""
    first = group.executors[0]
    return first.memory_mb > max(box.required.memory_mb for box in group.executors)


def _check_group(facts: Facts, group: Group) -> Iterator[Violation]:
    first, free = group.executors[0], measure_free(facts.cluster)
    rate = max(1.0, sum(has[1] for has in free.values()) / max(1, sum(has[0] for has in free.values())))
    held = len(group.executors) * (first.cores + first.memory_mb / rate)
    tenants, alone = _list_tenants(facts, group), _sum_alone(group)
    widest = max(step.cores for steps, _ in tenants.values() for step in steps)
    for cores in range(widest, first.cores):
        counts = {worker: _count_bins([step.cores for step in steps], cores) for worker, (steps, _) in tenants.items()}
        memory = max(_bound_memory(steps, copies, cores, facts.settings) for steps, copies in tenants.values())
        if not all(
            count * cores <= free[worker][0] and count * memory + alone[worker] <= free[worker][1]
            for worker, count in counts.items()
        ):
            continue
        # Disk is scarce where it has a limit: what more containers need of it is not told.
        fewer = sum(counts.values()) * (cores + memory / rate)
        if fewer < held - MARGIN and all(worker.free_disk_mb is None for worker in facts.cluster.workers):
            asked = f"{len(group.executors)} containers of {first.cores} cores"
            text = f"asks for {asked}: {sum(counts.values())} of {cores} on the same workers hold less"
            yield Violation("sizes", group.id, text)
            return


def _sum_alone(group: Group) -> Counter[str]:
    """MiB by worker of containers with copies alone, which stay beside the others."""
    alone = Counter[str]()
    for box in group.containers:
        if not box.instances:
            alone[box.worker] += box.memory_mb
    return alone


def _list_tenants(facts: Facts, group: Group) -> dict[str, tuple[list[Step], int]]:
    """Of each worker with an executor: the step of each instance there, and MiB of copies."""
    found: dict[str, tuple[list[Step], int]] = {}
    for box in group.executors:
        steps, copies = found.get(box.worker, ([], 0))
        held = [facts.steps[name] for name, _ in box.instances if name in facts.steps]
        found[box.worker] = [*steps, *held], copies + _sum_copies(facts, box)
    return found


def _sum_copies(facts: Facts, box: Container) -> int:
    kept = [facts.steps[name] for name, _ in (*box.standbys, *box.warmups) if name in facts.steps]
    return sum(step.state_mb or step.memory_mb or facts.settings.step_memory_mb for step in kept)


def _count_bins(widths: Sequence[int], cores: int) -> int:
    """Containers of so many cores that first fit decreasing takes."""
    free: list[int] = []
    for width in sorted(widths, reverse=True):
        at = next((at for at, left in enumerate(free) if width <= left), len(free))
        if at == len(free):
            free.append(cores)
        free[at] -= width
    return len(free)


def _bound_memory(steps: Sequence[Step], copies: int, cores: int, settings: Settings) -> int:
    """MiB of a container, padding included, whatever of these it holds."""
    most = cores // min(step.cores for step in steps)
    held = sum(heapq.nlargest(most, [step.memory_mb or settings.step_memory_mb for step in steps])) + copies
    return held + max(settings.padding_min_mb, math.ceil(held * settings.padding_fraction))
