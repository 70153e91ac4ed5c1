"""What a group says keeps it from computing sooner, against its steps as simulated.

A streaming group takes as long as its longest step. A batch group that takes as long as its longest chain of steps is
on its critical path; which of cores, memory and slots another one lacks follows from what the planner tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.checking.times.group_durations import list_simulated_groups
from airflow_dagsched.plan.checking.times.slot_simulation import SimulatedStep, simulate_group
from airflow_dagsched.plan.plan_types import Group

NEARLY = 1 + 1e-6


def check_limits(facts: Facts) -> Iterator[Violation]:
    """Once a policy or pruning has changed its containers, a group keeps the limit of before."""
    for group, steps in list_simulated_groups(facts):
        if group.residency == "all":
            if group.limit != "longest step":
                text = f"lacks {group.limit} by the plan, but streams: its longest step counts"
                yield Violation("limit", group.id, text)
        # Both change the containers without asking again what the group lacks.
        elif not group.placement and not any(entry.what == "instance" for entry in group.pruned):
            yield from _check_batch(facts, group, steps)


def _check_batch(facts: Facts, group: Group, steps: list[SimulatedStep]) -> Iterator[Violation]:
    chain_s = measure_longest_chain(steps, waves=group.limit == "critical path")  # first: simulating uses the steps up
    simulated = simulate_group(group, steps)
    if group.limit == "longest step":
        yield Violation("limit", group.id, "is limited by its longest step, but is no streaming group")
    elif group.limit == "critical path" and simulated.compute_s > chain_s * NEARLY:
        text = f"computes for {simulated.compute_s:g} s, its longest chain of steps takes {chain_s:g} s"
        yield Violation("limit", group.id, f"is said to be on its critical path, {text}")
    elif group.limit != "critical path" and simulated.compute_s <= chain_s and not _has_repeats(facts, group):
        yield Violation("limit", group.id, f"lacks {group.limit} by the plan, but is on its critical path")


def measure_longest_chain(steps: Sequence[SimulatedStep], *, waves: bool) -> float:
    """Seconds of the longest chain of steps that are still to be simulated: with all their waves, or of one each."""
    chains = [0.0] * len(steps)
    # Backwards: the readers of a step stand behind it, so their chains are known.
    for at, step in zip(reversed(range(len(steps))), reversed(steps), strict=True):
        if step.to_start:  # else left out: it takes no time, but the chain goes on
            chains[at] = step.seconds * -(-step.to_start // max(1, step.at_once)) if waves else step.seconds
        if step.readers:
            chains[at] += max([chains[reader] for reader in step.readers])
    return max(chains, default=0.0)


def _has_repeats(facts: Facts, group: Group) -> bool:
    """Whether steps of a loop are in the group: they run one after another, a whole plan's path counts the longest."""
    return any(facts.steps[name].repeat for name in group.steps)
