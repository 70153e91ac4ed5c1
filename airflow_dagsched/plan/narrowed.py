"""A narrowed dataset: apart from the other values of a plan, as a spill is."""

from __future__ import annotations

from airflow_dagsched.model.ranges import Count, Id, Share, Value


class Narrowed(Value, frozen=True, kw_only=True):
    """Dataset ``(src, output)``, of which only the columns, and rows, are kept that its readers use, as in the last run
    of the same code.
    """

    src: Id
    output: str = ""
    dst: tuple[Id, ...]
    columns: Count
    """All there are."""
    kept: Count
    share: Share
    """Of the bytes of all."""
    measured: bool
    """Whether ``share`` is of bytes that were stored; else it is by the types of the columns."""
    where: tuple[str, ...] = ()
    """What the rows fulfil that were stored, as SQL; all were where nothing is asked of them."""
