"""What the settings say of groups: who is apart, who together, how many steps, how much is spilled at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airflow_dagsched.plan.check.facts import BYTES_PER_MIB, TOLERANCE_S, Facts, Violation


def check_told(facts: Facts) -> Iterator[Violation]:
    """Lists of steps, the most steps of a group, pools, room for spills."""
    for names in facts.settings.apart:
        counts = Counter(facts.home.get(name, "") for name in set(names))
        for home, count in sorted(counts.items()):
            if home and count > 1:
                yield Violation("apart", home, f"holds {count} of the steps kept apart: {', '.join(sorted(names))}")
    for names in facts.settings.together:
        homes = {facts.home[name] for name in names if name in facts.home}
        if len(homes) > 1:
            yield Violation("together", names[0], f"and its companions are in {', '.join(sorted(homes))}")
    for group, steps in facts.members:
        if len(group.steps) > facts.settings.max_steps_per_group:
            yield Violation("steps", group.id, f"has {len(group.steps)}, at most {facts.settings.max_steps_per_group}")
        if len(steps) > 1 and len(pools := {step.pool for step in steps}) > 1:
            yield Violation("pool", group.id, f"has steps of the pools {', '.join(map(repr, sorted(pools)))}")
    yield from _spilled(facts)


def _spilled(facts: Facts) -> Iterator[Violation]:
    """A spill is there from the start of its writer to the end of its last reader; nothing is added to too much."""
    if facts.cluster.spill_mb is None:
        return
    span = {group.id: (group.start_s, group.end_s) for group in facts.plan.groups}
    changes: list[tuple[float, int, bool]] = []
    planned = {group.id for group in facts.plan.groups if group.progress == "planned"}
    for spill in facts.plan.spills:
        readers = [span[facts.home[name]][1] for name in spill.dst if facts.home.get(name) in span]
        if readers and facts.home.get(spill.src) in span:
            amount = facts.size.get((spill.src, spill.output), 0)
            adds = amount > 0 and facts.home[spill.src] in planned  # others wrote what they wrote
            changes += [
                (span[facts.home[spill.src]][0] + TOLERANCE_S, amount, adds),
                (max(readers), -amount, False),
            ]
    held = most = 0
    for _, amount, adds in sorted(changes):
        held += amount
        most = max(most, held if adds else 0)
    if most > facts.cluster.spill_mb * BYTES_PER_MIB:
        text = f"{most} bytes of spills at once, room for {facts.cluster.spill_mb} MiB"
        yield Violation("spill_mb", "cluster", text)
