"""What somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def suggest_name(name: object, known: Iterable[str]) -> str:
    """``did you mean 'x'?``; empty where nothing is like ``name``."""
    # Late: only mistakes need it.
    from difflib import get_close_matches

    similar = get_close_matches(str(name), list(known), n=1)
    return f"did you mean {similar[0]!r}?" if similar else ""
