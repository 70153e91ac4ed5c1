"""What somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable

_APPENDS = (
    "is no setting here: what is written says so, Table(..., mode=); a stream only appends, and rows that replace "
    "others go to a function with @task.spark_stream_sink"
)
SPARKS_WORDS = {"output_mode": _APPENDS, "outputMode": _APPENDS}
"""What an author may know from Spark, and where that is said here."""


def suggest_name(name: object, known: Iterable[str]) -> str:
    """``did you mean 'x'?``; empty where nothing is like ``name``."""
    # Late: only mistakes need it.
    from difflib import get_close_matches

    similar = get_close_matches(str(name), list(known), n=1)
    return f"did you mean {similar[0]!r}?" if similar else ""
