"""What a plan file would change: which step is in whose group.

    history ──tune──> plan ──reviewed, versioned──> plan file beside the DAG file ──adopted──> groups at parse

What a launch measures changes sizes and places by itself, but never which step is in whose group: that would
change the tasks of a DAG behind its author's back. Only the plan file does, and only while it is of this dataflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol


class Members(Protocol):
    """A group, planned or not."""

    @property
    def id(self) -> str:
        """Of its launch task."""
        ...

    @property
    def steps(self) -> tuple[str, ...]:
        """Their ids."""
        ...


def list_regrouped(before: Sequence[Members], after: Sequence[Members]) -> tuple[str, ...]:
    """One line for each group that changes; none if the plan file would change no task of the DAG."""
    return tuple(_describe_changes(before, after))


def _describe_changes(before: Sequence[Members], after: Sequence[Members]) -> Iterator[str]:
    old, new = ({group.id: set(group.steps) for group in groups} for groups in (before, after))
    for group in after:
        if group.id not in old:
            yield f"+ {group.id}: {', '.join(group.steps)}"
        # As sets: another order inside a group changes no task of the DAG.
        elif old[group.id] != new[group.id]:
            yield f"~ {group.id}: {_describe_difference(group.steps, old[group.id])}"
    yield from (f"- {group.id}" for group in before if group.id not in new)


def _describe_difference(steps: Sequence[str], before: set[str]) -> str:
    come = [f"+{step}" for step in steps if step not in before]
    return ", ".join([*come, *(f"-{step}" for step in sorted(before - set(steps)))])
