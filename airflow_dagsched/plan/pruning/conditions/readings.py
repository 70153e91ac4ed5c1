"""How a partition's value compares with a literal, under every type its column may have.

Spark infers a column's type from the names of all folders, a schema of the author's may say another, and
the type decides what is equal: ``hour=01`` is 1 to an integer column and not to a text one. So both are tried
and what is true under either may match::

    folder   column may be     = '1'               = 1          = DATE '2013-01-01'
    01       text, number      false, true         true         unreadable
    x        text              false               unreadable   unreadable

Sources: Spark's ``PartitioningUtils`` (inference), ``TypeCoercion`` (which side is cast), both also with ANSI mode off.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Literal

from airflow_dagsched.model.dataflow import Scalar
from airflow_dagsched.plan.pruning.conditions.condition import Operator, Value
from airflow_dagsched.plan.pruning.conditions.truth import ANYTHING, NEVER, Truth, make_truth

Kind = Literal["text", "number", "moment", "bool"]
Pair = tuple[Any, Any]
"""Two values of one type: the partition's, the literal's."""

OPERATORS: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EXACT_DIGITS = 15
"""More of them, and it matters whether Spark compares as double."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_MOMENT = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?")
_MONTH = re.compile(r"\d{4}(-\d{1,2})?")
_BOOLEANS = {"true": True, "t": True, "yes": True, "y": True, "1": True}
# As Spark's ``StringUtils`` casts text to boolean.
_BOOLEANS |= {"false": False, "f": False, "no": False, "n": False, "0": False}


def infer_kinds(values: Iterable[Scalar]) -> frozenset[Kind]:
    """The types that a column of these values (null left out) may have.

    Values that are no text have the type they are declared with. Fewer values than there are give no fewer types.
    """
    found = [value for value in values if value is not None]
    if found and all(isinstance(value, bool) for value in found):
        return frozenset({"bool"})
    # Declared as numbers: there is no folder whose spelling would leave it open.
    if found and not any(isinstance(value, str | bool) for value in found):
        return frozenset({"number"})
    kinds: set[Kind] = {"text"}
    if all(_read_number(value) is not None for value in found):
        kinds.add("number")
    if all(_read_moment(value) is not None for value in found):
        kinds.add("moment")
    return frozenset(kinds)


def compare_values(stored: Scalar, sign: Operator, literal: Value, kinds: Iterable[Kind]) -> Truth:
    """What ``stored sign literal`` may be; ``ANYTHING`` if under some type it cannot be told. Neither is null."""
    found = NEVER
    for kind in kinds:
        pairs = _list_readings(kind, stored, literal)
        # One type under which it cannot be told is enough: the column may be of it.
        if not pairs:
            return ANYTHING
        for one, other in pairs:
            found |= make_truth(OPERATORS[sign](one, other))
    return found


def _list_readings(kind: Kind, stored: Scalar, literal: Value) -> list[Pair]:
    """The readings of both as one type, each a way Spark may take; none if it can't be told."""
    if isinstance(literal, bool):
        return _pair_readings(_read_boolean(stored), literal)
    if isinstance(literal, int | Decimal):
        return [] if kind in ("bool", "moment") else _read_as_numbers(stored, literal)
    if isinstance(literal, date):
        return [] if kind in ("bool", "number") else _read_as_moments(_read_moment(stored), literal)
    if kind == "text":
        return _read_as_texts(stored, literal)
    return _read_text_literal(kind, stored, literal)


def _read_text_literal(kind: Kind, stored: Scalar, literal: str) -> list[Pair]:
    """A text literal against a column of another type: Spark casts it, or for ``IN`` may cast the column."""
    if kind == "bool":
        return _pair_readings(_read_boolean(stored), _read_boolean(literal))
    if kind == "number":
        number = _read_number(literal)
        pairs = [] if number is None else _read_as_numbers(stored, number)
    else:
        moment = read_moment(literal)
        pairs = [] if moment is None else _read_as_moments(_read_moment(stored), moment)
    # ``IN`` with texts casts the column to text: as Spark would write it, not as the folder is spelled.
    return [*pairs, (_write_canonical(kind, stored), literal)] if pairs else []


def _write_canonical(kind: Kind, stored: Scalar) -> str:
    """As Spark writes the typed value."""
    if kind == "number":
        return f"{_read_number(stored):f}"
    return str(_read_moment(stored))


def _read_as_texts(stored: Scalar, literal: str) -> list[Pair]:
    """Spaces at the end are nothing to a column of fixed width, and something to another; ``t`` may be ``true``."""
    text = str(stored)
    if text != text.rstrip(" ") or literal != literal.rstrip(" "):
        return []
    return [(text, literal), *_pair_readings(_read_boolean(text), _read_boolean(literal))]


def _pair_readings(one: bool | None, other: bool | None) -> list[Pair]:
    return [] if one is None or other is None else [(one, other)]


def _read_boolean(value: Scalar) -> bool | None:
    if isinstance(value, str):
        return _BOOLEANS.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _read_as_numbers(stored: Scalar, literal: int | Decimal) -> list[Pair]:
    """As they are, and cut to integers, as a cast from text to an integer does where ANSI mode is off."""
    number = _read_number(stored)
    if number is None or _read_number(str(literal)) is None:
        return []
    # Int() cuts towards zero, as Spark's cast does.
    pairs: list[Pair] = [(number, Decimal(literal)), (int(number), int(literal))]
    return pairs if number % 1 or literal % 1 else pairs[:1]


def _read_number(value: Scalar) -> Decimal | None:
    """None if it is no plain number, or has so many digits that it matters how Spark compares."""
    text = str(value).strip()
    # ``1e3``, ``0x1F`` and ``1_000`` are numbers to Python and something else, or nothing, to Spark.
    if isinstance(value, bool) or not _NUMBER.fullmatch(text) or sum(map(str.isdigit, text)) > EXACT_DIGITS:
        return None
    return Decimal(text)


def _read_moment(value: Scalar) -> date | None:
    """A date, or a local time; None if it is neither."""
    match = _MOMENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        found = date(int(year), int(month), int(day))
        at = time(int(hour or 0), int(minute or 0), int(second or 0), int((fraction or "0").ljust(6, "0")))
    except ValueError:  # such as February 30
        return None
    return found if hour is None else datetime.combine(found, at)


def read_moment(text: str) -> date | None:
    """A literal's date or local time; Spark reads a year or a month as its first day. None if it is neither."""
    month = _MONTH.fullmatch(text.strip())
    return _read_moment(f"{text.strip()}{'-01' if month and month[1] else '-01-01'}" if month else text)


def _read_as_moments(stored: date | None, literal: date) -> list[Pair]:
    """A date against a time: as dates, and as times, midnight being the date's."""
    if stored is None:
        return []
    pairs: list[Pair] = [(_convert_to_time(stored), _convert_to_time(local)) for local in _list_local_times(literal)]
    if not isinstance(stored, datetime):
        pairs += [
            (stored, local.date() if isinstance(local, datetime) else local) for local in _list_local_times(literal)
        ]
    return list(dict.fromkeys(pairs))


def _convert_to_time(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


def _list_local_times(literal: date) -> Iterator[date]:
    """A moment with a zone is that time of its own zone, or of UTC: folders do not say which they mean."""
    if isinstance(literal, datetime) and literal.tzinfo is not None:
        # Which zone the folders mean is the writer's session's: either may be, so either may match.
        yield literal.replace(tzinfo=None)
        yield literal.astimezone(UTC).replace(tzinfo=None)
    else:
        yield literal
