"""An answer's JSON as a typed value: only the fields that are named count, whatever else a newer manager adds."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from airflow_dagsched.errors import ClusterUnknown

A = TypeVar("A", bound="Answer")


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """Part of what a manager answers. Unknown fields are ignored."""


def read_answer(kind: type[A], content: bytes, asked: str) -> A:
    """The answer in ``content``; raises ``ClusterUnknown`` that names ``asked`` and the field that is wrong."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise ClusterUnknown(asked, f"{error}") from None
    # No error of msgspec's own: Python's, for JSON that is nested deeper than it may recurse.
    except RecursionError:
        raise ClusterUnknown(asked, "JSON is nested too deeply") from None
