"""Calling a step: its arguments filled in, its answer checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.calls import ContextValue, Given, Handed, Output
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.protocol.printable import clean_value
from airflow_dagsched.launch.protocol.wire import DEEPEST, is_plain

VALUE_BYTES = 48 * 1024
"""Largest plain value a step may return, as JSON."""


@dataclass
class StepFault(DagschedError):
    """The author's step did what a step cannot do; the message says what to do instead."""

    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Answer:
    """What a step returned: named DataFrames ("" for a single one), or else a plain value."""

    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    value: Any = None


Source = Callable[[Output, SparkSession], Any]
"""What a step gets for an input, in its session."""
Context = Callable[[str, SparkSession], Any]


def fill_placeholders(value: Any, replaced: Callable[[Output | ContextValue | Handed], Any]) -> Any:
    """``value`` with its placeholders, in lists, tuples and dicts too, replaced."""
    match value:
        case Output() | ContextValue() | Handed():
            return replaced(value)
        case Mapping():
            return {key: fill_placeholders(item, replaced) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return type(value)(fill_placeholders(item, replaced) for item in value)
        case _:
            return value


def call_step(
    call: Call,
    session: SparkSession,
    source: Source,
    context: Context,
    handed: Mapping[Given, Any] = MappingProxyType({}),
) -> Any:
    """Run the step: its function, or its SQL with the inputs as views. Raises what the author's code raises.

    :param handed: what a function of a stream gets beside its inputs.
    """

    def replaced(placeholder: Output | ContextValue | Handed) -> Any:
        if isinstance(placeholder, Output):
            return source(placeholder, session)
        if isinstance(placeholder, Handed):
            return handed[placeholder.what]
        return context(placeholder.name, session)

    args, kwargs = fill_placeholders(call.args, replaced), fill_placeholders(dict(call.kwargs), replaced)
    if call.function is not None:
        return call.function(*args, **kwargs)
    return run_sql(session, call.sql or "", kwargs)


def route_rows(rows: Any, routed: Mapping[str, str], output: Output) -> Any:
    """``rows`` of ``output``, if they are rows, with what Spark is told of the way they go."""
    how = routed.get(output.key)
    if how is None or not isinstance(rows, DataFrame):
        return rows
    # A hint, which joins look for above an alias, too; one partition is one task.
    return rows.hint("broadcast") if how == "broadcast" else rows.coalesce(1)


def run_sql(session: SparkSession, text: str, inputs: Mapping[str, Any]) -> DataFrame:
    """``text`` over ``inputs``: DataFrames as views of their names, plain values as parameters ``:name``."""
    for name, value in inputs.items():
        if isinstance(value, DataFrame):
            # In the step's own session: two steps may give two inputs one name.
            value.createOrReplaceTempView(name)
    plain = {name: value for name, value in inputs.items() if not isinstance(value, DataFrame)}
    # With arguments every ``:name`` in the text is one, also where the author meant none.
    return session.sql(text, args=plain) if plain else session.sql(text)


def check_answer(returned: Any, requested: tuple[str, ...], table: bool) -> Answer:
    """What the step returned, if a step may return that.

    :param requested: names of the outputs that are read or committed.
    :param table: whether the step declares a table it writes.
    Raises ``StepFault`` otherwise.
    """
    answer = _parse_answer(returned)
    missing = [name for name in requested if name not in answer.frames]
    # A plain value where one output is read: readers get the value.
    if not missing or (not answer.frames and requested == ("",) and not table and answer.value is not None):
        return answer
    raise StepFault(_describe_missing(missing[0], answer, table))


def _parse_answer(returned: Any) -> Answer:
    if isinstance(returned, DataFrame):
        return Answer({"": returned})
    if isinstance(returned, Mapping) and any(isinstance(item, DataFrame) for item in returned.values()):
        return Answer(_collect_frames(returned))
    return Answer(value=_convert_to_plain(returned))


def _collect_frames(returned: Mapping[Any, Any]) -> dict[str, DataFrame]:
    for name, item in returned.items():
        if not isinstance(name, str) or not isinstance(item, DataFrame):
            raise StepFault(f"a dict with DataFrames must have nothing else in it, but {name!r} is {_name_type(item)}")
    return dict(returned)


def _convert_to_plain(returned: Any) -> Any:
    try:
        # NaN is no JSON: Airflow's database would refuse the whole result.
        text = json.dumps(returned, allow_nan=False)
        _check_integers(returned)
        # As JSON has it: tuples are lists there, keys are strings.
        _check_depth(json.loads(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise StepFault(
            f"returned {_name_type(returned)} ({error}): return a DataFrame, a dict of named DataFrames, None, "
            "or a plain JSON value (float(x), str(x), x.tolist() make one)"
        ) from None
    size = len(text.encode())
    if size > VALUE_BYTES:
        raise StepFault(
            f"returned {size} bytes of JSON, more than {VALUE_BYTES}: return it as a DataFrame, "
            "or write it somewhere and return the path"
        )
    plain, safe = json.loads(text), clean_value(json.loads(text))
    if safe != plain:
        print("what the step returned has NUL or half a surrogate pair in it, which no database takes: shown as text")
    return safe


def _check_integers(value: Any) -> None:
    """Raises ``ValueError`` for an integer that Airflow can't send."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError("an integer of more than 64 bits")
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ():
        _check_integers(item)


def _check_depth(value: Any) -> None:
    """Raises ``ValueError`` for what nobody would read."""
    if not is_plain(clean_value(value)):
        raise ValueError(f"more than {DEEPEST} levels of it")


def _describe_missing(name: str, answer: Answer, table: bool) -> str:
    found = ", ".join(repr(each) for each in sorted(answer.frames)) or _name_type(answer.value)
    if table and name == "":
        return f"declares a table it writes, so it must return one DataFrame, not {found}"
    if name == "":
        return f"returned {found}, but its rows are read: return one DataFrame"
    return f"did not return the dataset {name!r}, which is read: it returned {found}; return a dict with that name"


def _name_type(value: Any) -> str:
    return "None" if value is None else f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
