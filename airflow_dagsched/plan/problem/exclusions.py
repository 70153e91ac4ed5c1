"""What pruning takes away from a problem, in numbers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Exclusions(Struct, frozen=True):
    """Steps that are not run, and workers that groups must not use."""

    idle_steps: frozenset[int] = frozenset()
    """As nodes: they take no time, and nothing is written or read for them."""
    allowed_workers: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """First step of a group -> the only workers it may be on; a group that is missing may be on any."""


NOTHING_EXCLUDED = Exclusions()
