"""Where everything is to be in the end."""

from __future__ import annotations

from msgspec import Struct


class Targets(Struct, frozen=True):
    """The worker of each instance, and the workers of each stateful one's standbys."""

    active: dict[int, int]
    standbys: dict[int, list[int]]
    stateless: dict[int, int]
