"""What an author declares about a channel: on the call of the step that reads it, or around the value itself.

::

    totals(clean(), bytes=2 * 10**9)                                  its only input
    joined(clean(), shops(), routing={"shops": "broadcast"})          by parameter
    joined([channel(clean(), bytes=10**9), channel(shops(), routing="broadcast")])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

from airflow_dagsched.provider.spec.call_arguments import iterate_leaves, transform_leaves

Routing = Literal["forward", "shuffle", "broadcast", "single"]
Kind = Literal["pipelined", "buffered"]
ON_THE_CALL = ("bytes", "routing")
"""Words of a channel that may stand among the arguments of a call."""
_LARGEST = 2**63 - 1


class DeclaredChannel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is not said is the planner's to know: sizes by history, the rest by what the steps declare."""

    bytes: int | None = None
    """Of the whole dataset; it counts before what was measured."""
    routing: Routing | None = None
    kind: Kind | None = None
    """Buffered: stored under ``work_dir`` as soon as it is made, and read from there."""

    def __post_init__(self) -> None:
        size = self.bytes
        if size is not None and (not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= _LARGEST):
            raise ValueError(f"bytes must be a whole number of at least 1, not {size!r}")
        for name, value, known in (("routing", self.routing, Routing), ("kind", self.kind, Kind)):
            if value is not None and value not in get_args(known):
                raise ValueError(f"{name} {value!r} is none of {', '.join(get_args(known))}")


class ChannelInput(Struct, frozen=True):
    """A value among a step's arguments with what its author says of its channel; a step takes it out again."""

    value: Any
    words: Mapping[str, Any]
    """Unchecked: who knows the step says what is wrong."""


def channel(value: Any, *, bytes: int | None = None, routing: Routing | None = None, kind: Kind | None = None) -> Any:  # noqa: A002 - the word of the dataflow file
    """``value``, the rows of a step, with what is known of the channel from there to the step that takes it.

    :param bytes: of the dataset, as stored: counts before what was measured.
    :param routing: how instances of the two steps exchange rows: ``"broadcast"`` hands all of them to every instance
        (Spark is told so), ``"single"`` to one, ``"forward"`` each to the one of its number.
    :param kind: ``"buffered"`` stores the dataset under ``work_dir`` once it is made.
    """
    words = {"bytes": bytes, "routing": routing, "kind": kind}
    return ChannelInput(value, {name: word for name, word in words.items() if word is not None})


FindRows = Callable[[Any], "tuple[str, str] | None"]
"""Task and output whose rows a value stands for; None where it stands for none."""
Said = tuple[tuple[Any, DeclaredChannel], ...]
"""Values that stand for rows, with what is said of their channels."""


def take_channel_words(
    arguments: Mapping[str, Any], on_call: Mapping[str, Any], find_rows: FindRows
) -> tuple[dict[str, Any], Said]:
    """``arguments`` without what is said of channels, and that.

    :param on_call: ``bytes`` and ``routing``, for the only input or by parameter.
    Raises ``ValueError`` for what is wrong, or is said of no step's rows, or twice.
    """
    wrapped = [leaf for leaf in iterate_leaves(arguments) if isinstance(leaf, ChannelInput)]
    if not (wrapped or on_call):
        return dict(arguments), ()
    plain = {name: transform_leaves(value, unwrap_channel) for name, value in arguments.items()}
    on_values = [said for leaf in wrapped for said in _list_words_around(leaf)]
    said: dict[Any, tuple[Any, dict[str, Any]]] = {}
    for value, words in [*on_values, *_list_words_on_call(plain, on_call, find_rows)]:
        source = find_rows(value)
        if source is None:
            raise ValueError(f"{', '.join(words) or 'channel()'}: of a channel, but {value!r} is the rows of no step")
        known = said.setdefault(source, (value, {}))[1]
        twice = next((word for word in words if word in known and known[word] != words[word]), None)
        if twice is not None:
            raise ValueError(f"{twice}: said twice of one channel, {known[twice]!r} and {words[twice]!r}")
        known.update(words)
    return plain, tuple((value, DeclaredChannel(**words)) for value, words in said.values())


def unwrap_channel(leaf: Any) -> Any:
    """The value itself, however many ``channel`` there are around it."""
    return unwrap_channel(leaf.value) if isinstance(leaf, ChannelInput) else leaf


def _list_words_around(leaf: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """The value with what each ``channel`` around it says, from the inside out."""
    if isinstance(leaf, ChannelInput):
        yield from _list_words_around(leaf.value)
        yield unwrap_channel(leaf), leaf.words


def _list_words_on_call(
    arguments: Mapping[str, Any], on_call: Mapping[str, Any], find_rows: FindRows
) -> Iterator[tuple[Any, dict[str, Any]]]:
    rows = {
        name: [leaf for leaf in iterate_leaves(value) if find_rows(leaf) is not None]
        for name, value in arguments.items()
    }
    inputs = {name: found for name, found in rows.items() if found}
    for word, given in on_call.items():
        by_name = given if isinstance(given, Mapping) else dict.fromkeys(inputs, given)
        if len(by_name) != 1 and not isinstance(given, Mapping):
            has = f"{len(inputs)} inputs" if inputs else "no input"
            raise ValueError(f"{word}: the step has {has}; say of which, {word}={{'parameter': {given!r}}}")
        for name, value in by_name.items():
            if name not in inputs:
                raise ValueError(f"{word}: {name!r} takes no step's rows; {', '.join(inputs) or 'nothing'} does")
            if len(inputs[name]) != 1:
                raise ValueError(f"{word}: {name!r} takes {len(inputs[name])} datasets; put channel(...) around each")
            yield inputs[name][0], {word: value}
