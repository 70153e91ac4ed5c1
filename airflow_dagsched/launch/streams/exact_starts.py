"""Whether a new query can begin at exactly the row up to which an old one has read. Pure.

Where state is carried on it must: a row that is read twice counts twice, and no window tells.
"""

from __future__ import annotations

from collections.abc import Iterable

from airflow_dagsched.launch.streams.manifest import SourceSpec

BY_LIST = frozenset(["parquet", "orc", "json", "csv", "text"])
"""Formats of files: the list of those that were read is made the new query's before it starts."""
BY_OPTION = frozenset(["kafka", "rate-micro-batch"])
"""Formats with an option for it; of others theirs may begin before an offset."""


def has_own_list(source: SourceSpec) -> bool:
    """Whether the source can be read over no rows with the same columns in the same order, which makes its list."""
    # With that option columns come from names of folders anywhere in a path.
    return source.format in BY_LIST and not any(name.lower() == "basepath" for name in source.options)


def explain_inexact(sources: Iterable[SourceSpec]) -> str:
    """Why a query of these sources can't begin there; empty: it can."""
    listed = {source.name: has_own_list(source) for source in sources}
    for source in sources:
        if source.format not in BY_OPTION and not listed[source.name]:
            what = "files with the option basePath" if source.format in BY_LIST else source.format
            return f"{what} of source {source.name!r} can't be read on from the very row that the old graph has read"
    if len({*listed.values()}) > 1:
        names = ", ".join(repr(name) for name, is_listed in listed.items() if is_listed)
        return f"files of {names} and rows of other kinds of sources can't both be read on from where the old graph is"
    return ""
