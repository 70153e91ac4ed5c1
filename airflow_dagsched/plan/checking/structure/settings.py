"""What the settings say of groups: who is apart, who together, how many steps, how much is spilled at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation, measure_tolerance


def check_settings(facts: Facts) -> Iterator[Violation]:
    """Lists of steps, the most steps of a group, pools, room for spills."""
    for names in facts.settings.apart:
        # A name in the list twice is one step; a step that is in no group is for ``check_members``.
        counts = Counter(facts.group_of.get(name, "") for name in set(names))
        for name, count in sorted(counts.items()):
            if name and count > 1:
                yield Violation("apart", name, f"holds {count} of the steps kept apart: {', '.join(sorted(names))}")
    for names in facts.settings.together:
        groups = {facts.group_of[name] for name in names if name in facts.group_of}
        if len(groups) > 1:
            yield Violation("together", names[0], f"and its companions are in {', '.join(sorted(groups))}")
    for group, steps in facts.members:
        if len(group.steps) > facts.settings.max_steps_per_group:
            yield Violation("steps", group.id, f"has {len(group.steps)}, at most {facts.settings.max_steps_per_group}")
        if len(steps) > 1 and len(pools := {step.pool for step in steps}) > 1:
            yield Violation("pool", group.id, f"has steps of the pools {', '.join(map(repr, sorted(pools)))}")
    yield from _check_spills_in_flight(facts)


def _check_spills_in_flight(facts: Facts) -> Iterator[Violation]:
    """A spill is there from the start of its writer to the end of its last reader; nothing is added to too much."""
    if facts.cluster.spill_mb is None:
        return
    span = {group.id: (group.start_s, group.end_s) for group in facts.plan.groups}
    changes: list[tuple[float, int, bool]] = []
    planned = {group.id for group in facts.plan.groups if group.progress == "planned"}
    for spill in facts.plan.spills:
        readers = [span[facts.group_of[name]][1] for name in spill.dst if facts.group_of.get(name) in span]
        if readers and facts.group_of.get(spill.src) in span:
            amount = facts.dataset_bytes.get((spill.src, spill.output), 0)
            start = span[facts.group_of[spill.src]][0]
            adds = amount > 0 and facts.group_of[spill.src] in planned  # others wrote what they wrote
            changes += [
                # A little later than told: a spill that ends at this moment, but for rounding, has gone before.
                (start + measure_tolerance(start), amount, adds),
                (max(readers), -amount, False),
            ]
    held = most = 0
    for _, amount, adds in sorted(changes):
        held += amount
        # Too much that is there already, because sizes were measured since, is not this plan's doing.
        most = max(most, held if adds else 0)
    if most > facts.cluster.spill_mb * MIB:
        text = f"{most} bytes of spills at once, room for {facts.cluster.spill_mb} MiB"
        yield Violation("spill_mb", "cluster", text)
