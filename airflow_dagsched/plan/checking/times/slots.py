"""The slots of a group: how many of its steps may run side by side, which the launch hands to the driver program."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation


def check_slots(facts: Facts) -> Iterator[Violation]:
    """A batch group has no more slots than the settings allow, or steps; in a streaming group as many as may run do."""
    for group in facts.plan.groups:
        # What has begun runs with the slots it was launched with, whatever the settings are now.
        if not group.containers or group.progress != "planned":
            continue
        allowed = facts.settings.slots
        if group.residency == "all" and group.slots != min(allowed, len(group.steps)):
            yield Violation("slots", group.id, f"has {group.slots} slots, not {min(allowed, len(group.steps))}")
        elif group.slots > allowed:
            yield Violation("slots", group.id, f"has {group.slots} slots, the settings allow {allowed}")
        elif group.slots > len(group.steps):
            yield Violation("slots", group.id, f"has {group.slots} slots for {len(group.steps)} steps")
