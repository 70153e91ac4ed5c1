"""Where everything is to be in the end."""

from __future__ import annotations

from msgspec import Struct


class Targets(Struct, frozen=True):
    """Of each stateful instance the worker, and the workers of its standbys; of each stateless one the worker."""

    active: dict[int, int]
    standbys: dict[int, list[int]]
    stateless: dict[int, int]
