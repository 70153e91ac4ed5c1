"""How numbers, times and names are said in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.units import MIB
from airflow_dagsched.plan.narrowed import Narrowed
from airflow_dagsched.plan.spill import Spill

MINUTE_S, HOUR_S = 60.0, 3600.0
LONG_S, VERY_LONG_S = 10 * MINUTE_S, 2 * HOUR_S


def format_duration(seconds: float) -> str:
    """``71.0 s``; from ten minutes on ``12 min 5 s``, from two hours on ``3 h 0 min``."""
    if round(seconds, 1) < LONG_S:
        return f"{seconds:.1f} s"
    if round(seconds) < VERY_LONG_S:
        return "{:.0f} min {:.0f} s".format(*divmod(round(seconds), MINUTE_S))
    return "{:.0f} h {:.0f} min".format(*divmod(round(seconds / MINUTE_S), HOUR_S / MINUTE_S))


def format_share(share: float) -> str:
    """``38%``; ``all`` of it, and never 0% of something, or 100% of what is not all."""
    if share == 1:
        return "all"
    return "less than 1%" if share < 0.01 else "more than 99%" if share > 0.99 else f"{share:.0%}"


def format_size(number: int) -> str:
    """Bytes as ``300.0 MiB``."""
    return f"{number / MIB:.1f} MiB"


def join_names(names: Sequence[str], most: int = 8) -> str:
    """``a, b, c``; of very many, the first and how many more."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def format_names(what: str, names: Sequence[str], most: int = 4) -> str:
    """``worker w1``, ``2 workers (w1, w3)``; of very many the first."""
    return f"{what} {names[0]}" if len(names) == 1 else f"{format_count(len(names), what)} ({join_names(names, most)})"


def name_dataset(dataset: Spill | Narrowed) -> str:
    """``load``, or ``load.errors`` for an output with a name."""
    return f"{dataset.src}.{dataset.output}" if dataset.output else dataset.src


def say_narrowed(one: Narrowed) -> str:
    """``7 of 36 columns: 0.2 of the bytes``, and how that is known."""
    how = "as stored" if one.measured else "by their types"
    rows = f" of the rows with {' and '.join(one.where)}" if one.where else ""
    return f"{one.kept} of {one.columns} columns{rows}: {one.share:.1g} of the bytes, {how}"


def format_count(number: int, what: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
