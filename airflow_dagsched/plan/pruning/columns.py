"""Whether fewer folders would make Spark read a partition column as another type.

    code=1, code=A      both: text      code=1 alone: an integer, and no longer equal to '1' as text is

Spark infers a column's type from the values in all folders it is shown (``PartitioningUtils``). The type follows from
the kinds of the values; so if the kinds stay the same, it does. Of folders that were never listed, because one above
them cannot match, the values are not known: they are taken to be like the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from airflow_dagsched.plan.pruning.layout import split_folder_name

_WHOLE = re.compile(r"[+-]?\d+")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_TIME = re.compile(r"\d{4}-\d{1,2}-\d{1,2}[ T]\d{2}:.*")


def has_same_types(folders: Iterable[str], others: Iterable[str]) -> bool:
    """Whether ``folders`` (``day=2013-01-01/hour=0``) alone show the types that they show together with ``others``."""
    some = _collect_kinds(folders)
    more = _collect_kinds(others)
    # A column only in the folders left out is of no matter: Spark is not shown it.
    return all(more.get(column, kinds) <= kinds for column, kinds in some.items())


def _collect_kinds(folders: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder in folders:
        for name in folder.split("/"):
            column, value = split_folder_name(name) or ("", None)
            if value is not None:
                found.setdefault(column, set()).add(_infer_kind(value))
    return found


def _infer_kind(value: str) -> str:
    if _WHOLE.fullmatch(value):
        # Spark tries int, then long, then a decimal.
        bits = int(value).bit_length()
        return "int" if bits < 32 else "long" if bits < 64 else "decimal"
    if _DATE.fullmatch(value):
        return "date"
    return "time" if _TIME.fullmatch(value) else "number" if _is_number(value) else "text"


def _is_number(value: str) -> bool:
    try:
        return Decimal(value).is_finite()  # Decimal reads "NaN" and "Infinity"
    except InvalidOperation:
        return False
