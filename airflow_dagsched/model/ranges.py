"""The base of every value of the file formats, and the ranges its fields share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

LARGEST = 2**53
"""Above it a JSON number is no longer exact everywhere."""

Id = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Position = Annotated[int, Meta(ge=0, le=LARGEST)]
Cores = Annotated[int, Meta(ge=0, le=1_000_000)]
MiB = Annotated[int, Meta(ge=0, le=LARGEST)]
Bytes = Annotated[int, Meta(ge=0, le=LARGEST)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
Quantity = Annotated[float, Meta(ge=0, le=1e15)]
Positive = Annotated[float, Meta(gt=0, le=1e15)]
MOST_PLANNED = 1e36
"""Of what a plan adds up: 100,000 steps of 1,000,000 waves of the longest runtime, on all cores there may be."""
Planned = Annotated[float, Meta(ge=0, le=MOST_PLANNED)]
Share = Annotated[float, Meta(ge=0, le=1)]
"""Of a whole."""


def describe_setting(what: str, unit: str) -> Meta:
    """What a setting is for, and in which unit: its row in a table of the docs."""
    return Meta(description=what, extra={"unit": unit})


class Value(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A frozen value of a file format, written with all its fields.

    Frozen values refer to nothing that could refer back: the garbage collector need not walk 400,000 of them.
    """


class Declared(Value, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value a person writes. Defaults are left out: a field added later changes no older digest."""
