"""What a group says of its slots, and of what keeps it from computing sooner, against its steps as they were played.

Streaming groups take as long as their longest step. A batch group that takes as long as its longest chain of steps is
on its critical path; which of cores, memory and slots another one lacks follows from what the planner tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.check.playing import Played, Playing
from airflow_dagsched.plan.values import Group

NEARLY = 1 + 1e-6


def longest_chain(steps: Sequence[Playing], *, waves: bool) -> float:
    """Seconds of the longest chain of steps that are still to be played: with all their waves, or of one each."""
    found = [0.0] * len(steps)
    for at, step in zip(reversed(range(len(steps))), reversed(steps), strict=True):
        if step.to_start:
            found[at] = step.seconds * -(-step.to_start // max(1, step.at_once)) if waves else step.seconds
        if step.readers:
            found[at] += max([found[reader] for reader in step.readers])
    return max(found, default=0.0)


def check_limits(facts: Facts, group: Group, chain_s: float, played: Played) -> Iterator[Violation]:
    """``chain_s``: of the longest chain, with all waves where the group is said to be on its critical path.

    Once a policy or pruning has changed containers, what was said stays.
    """
    if group.residency == "all":
        yield from _resident(facts, group)
        return
    if group.slots > facts.settings.slots:
        yield Violation("slots", group.id, f"has {group.slots} slots, the settings allow {facts.settings.slots}")
    if group.placement or (group.pruned and any(one.what == "instance" for one in group.pruned)):
        return
    if group.slots != played.side_by_side:
        yield Violation("slots", group.id, f"has {group.slots} slots, of which {played.side_by_side} are ever in use")
    if group.limit == "longest step":
        yield Violation("limit", group.id, "is limited by its longest step, but is no streaming group")
    elif group.limit == "critical path" and played.compute_s > chain_s * NEARLY:
        text = f"computes for {played.compute_s:g} s, its longest chain of steps takes {chain_s:g} s"
        yield Violation("limit", group.id, f"is said to be on its critical path, {text}")
    elif group.limit != "critical path" and played.compute_s <= chain_s and not _repeats(facts, group):
        yield Violation("limit", group.id, f"lacks {group.limit} by the plan, but is on its critical path")


def _resident(facts: Facts, group: Group) -> Iterator[Violation]:
    most = min(facts.settings.slots, len(group.steps))
    if group.slots != most:
        yield Violation("slots", group.id, f"has {group.slots} slots, not {most}")
    if group.limit != "longest step":
        yield Violation("limit", group.id, f"lacks {group.limit} by the plan, but streams: its longest step counts")


def _repeats(facts: Facts, group: Group) -> bool:
    """Of a loop's steps, which run one after another here, the path of a whole plan counts only the longest."""
    return any(facts.steps[name].repeat for name in group.steps)
