"""What a numbered log is of: its records, and the story that they come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from airflow_dagsched.launch.protocol.wire import Unreadable, load_json
from airflow_dagsched.switch.fold import fold, restore_story
from airflow_dagsched.switch.records import GarbledLog, Record, encode_record, fit_record
from airflow_dagsched.switch.story import Story, is_needed


class Numbered(Protocol):
    """A record."""

    @property
    def n(self) -> int:
        """Its place in the log, from 1."""
        ...

    @property
    def at(self) -> float:
        """When it was written, in seconds since 1970."""
        ...


class Told(Protocol):
    """What records come to."""

    @property
    def last(self) -> int:
        """Number of the newest of them."""
        ...


R = TypeVar("R", bound=Numbered)
S = TypeVar("S", bound=Told)


@dataclass(frozen=True, slots=True)
class LogRules(Generic[R, S]):
    """Of one kind of log."""

    empty: S
    fit: Callable[[Any, str], R]
    """Of parsed JSON, and the file's name for the error. Raises ``GarbledLog``."""
    encode: Callable[[R], str]
    fold: Callable[[S, R], S]
    """The story with the next record. Raises what keeps that from being the next one."""
    restore: Callable[[Iterable[R], int], S]
    """The story of records that were looked at before, and of all others up to this number. Raises ``LookupError``
    with what they lack.
    """
    is_needed: Callable[[S, R], bool]
    """Whether the story refers to a record that it was made of."""


FLOW_RULES: LogRules[Record, Story] = LogRules(Story(), fit_record, encode_record, fold, restore_story, is_needed)


def load_file(text: str, path: Path) -> Any:
    """The JSON in a file of a log. Raises ``GarbledLog``."""
    try:
        return load_json(text)
    except Unreadable as error:
        raise GarbledLog(str(path), f"is no JSON: {error}") from None
