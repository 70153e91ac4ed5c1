"""Where a connection says to ask: several addresses, of which the first that leads counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from airflow_dagsched.errors import ClusterUnknown

T = TypeVar("T")


def parse_addresses(value: Any) -> list[str]:
    """Of a connection's extra: a list, or text with commas; ``http://`` in front where nothing is."""
    parts = value.split(",") if isinstance(value, str) else value or ()
    found = (str(part).strip() for part in parts)
    return [(part if "://" in part else f"http://{part}").rstrip("/") for part in found if part]


def ask_in_turn(asked: Iterable[str], answer_of: Callable[[str], T]) -> T:
    """Of the first address that answers, and leads: others are its standbys. Raises what all of them said."""
    refusals = []
    for address in asked:
        try:
            return answer_of(address)
        # A standby answers as well, with a refusal or a page that says so: the next address is asked.
        except ClusterUnknown as error:
            refusals.append(error)
    if len(refusals) == 1:  # its own words are the plainest
        raise refusals[0]
    raise ClusterUnknown("every address", "; ".join(map(str, refusals)))
