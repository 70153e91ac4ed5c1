"""States as an old graph has them and a new one declares them, and whether one can go on as the other. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["value", "list", "map"]
Code = Literal[
    "not kept",
    "not declared",
    "another kind",
    "other fields",
    "runs out",
    "not taken",
    "several",
    "none",
    "mixed",
    "new query",
]
SENTENCES: Mapping[Code, str] = {
    "not kept": "carries={name!r}: the graph that runs has no such state, it has {old}: "
    "name one of those, or switch by replay",
    "not declared": "carries={name!r}: the new transformWithState declares no such state, it has {new}: "
    "declare it in init()",
    "another kind": "carries={name!r}: it is a {old} state in the graph that runs, and a {new} state in the new one: "
    "declare it as before, under another name make a new one",
    "other fields": "carries={name!r}: it has {old} in the graph that runs, and {new} in the new one: "
    "keep names and types, and convert in handleInitialState to a state of another name",
    "runs out": "carries={name!r}: it has a time to live, which nobody can read: leave ttlDurationMs out",
    "not taken": "the new processor takes nothing over: define handleInitialState",
    "several": "transformWithState is called several times for what this query writes: of one query one can go on, "
    "so write the others by steps of their own",
    "none": "declares carries=, and does not call transformWithState: leave carries= out",
    "mixed": "the graph that runs keeps other state beside that of one transformWithState, and it would be lost: "
    "stop the stream, and begin by replay",
    "new query": "the graph that runs writes no such step, so there is no state to go on with: keep its name, "
    "or make a dataflow of its own of it",
}


@dataclass(frozen=True, slots=True)
class StateShape:
    """One state of a ``transformWithState``."""

    name: str
    kind: Kind
    fields: str
    """Of its value, in Spark's words: ``struct<amount:bigint>``."""
    keys: str = ""
    """Of a map."""
    expires: bool = False


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why a state cannot go on; which fields there are depends on the code."""

    code: Code
    name: str = ""
    old: str = ""
    new: str = ""


def compare_shapes(
    carries: tuple[str, ...], old: Mapping[str, StateShape], new: Mapping[str, StateShape]
) -> tuple[Mismatch, ...]:
    """What is in the way of the states ``carries``; nothing: they go on."""
    return tuple(mismatch for name in carries for mismatch in _compare_one(name, old, new))


def tell_mismatch(step: str, mismatch: Mismatch) -> str:
    """One line: the step, what is wrong, and the way out."""
    return f"step {step!r}: " + SENTENCES[mismatch.code].format(
        name=mismatch.name, old=mismatch.old or "none", new=mismatch.new or "none"
    )


def _compare_one(name: str, old: Mapping[str, StateShape], new: Mapping[str, StateShape]) -> Iterator[Mismatch]:
    if name not in old:
        yield Mismatch("not kept", name, old=", ".join(sorted(old)))
    if name not in new:
        yield Mismatch("not declared", name, new=", ".join(sorted(new)))
    if name in old and name in new:
        yield from _compare_both(old[name], new[name])


def _compare_both(old: StateShape, new: StateShape) -> Iterator[Mismatch]:
    if old.kind != new.kind:
        yield Mismatch("another kind", old.name, old.kind, new.kind)
    elif (old.keys, old.fields) != (new.keys, new.fields):
        yield Mismatch("other fields", old.name, _tell_fields(old), _tell_fields(new))
    if old.expires or new.expires:
        yield Mismatch("runs out", old.name)


def _tell_fields(shape: StateShape) -> str:
    return f"{shape.keys} -> {shape.fields}" if shape.keys else shape.fields
