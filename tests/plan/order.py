"""A dataflow or cluster written down in another order: every array whose order means nothing, however deep."""

from __future__ import annotations

import random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

ORDERED = frozenset({"dependencies"})
"""Fields of pairs: which comes first means something."""


def shuffle_deeply(rng: random.Random, value: Any) -> Any:
    """The same value with partitions, blocks, hosts, sources, pins, tokens and all other lists in another order."""
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return replace(value, **{name: _shuffle_field(rng, name, field) for name, field in fields.items()})
    if isinstance(value, tuple):
        return tuple(shuffle_deeply(rng, one) for one in rng.sample(value, len(value)))
    return value


def _shuffle_field(rng: random.Random, name: str, field: Any) -> Any:
    return tuple(rng.sample(field, len(field))) if name in ORDERED else shuffle_deeply(rng, field)
