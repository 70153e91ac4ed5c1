"""Measurements as a page to read, and as a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import PAIRS, Measured
from benchmarks.parse_time import Parse

NAMES = {
    "per_step": "one submit per step",
    "per_step_by_hand": "a program per step",
    "planned": "planned, plain Java",
    "by_hand": "by hand, plain Java",
    "by_hand_light": "by hand, same archive",
    "planned_light": "planned cold",
    "planned_warming": "planned, warm from the 1st",
    "planned_warm": "planned warm",
}
"""As a person reads them. Plain Java has neither the quick compiler nor an archive; the last four have both."""


def page(measured: Sequence[Measured], parses: Sequence[Parse], import_s: float | None) -> str:
    """Tables of medians and ratios."""
    lines = [line for found in measured for line in _tell_case(found)]
    lines += _compare_cases(measured)
    if parses:
        lines += ["", "Parse, processor seconds   plain operators   with planner     added"]
        lines += [f"  {p.steps:>5} steps {p.plain_s:>28.3f} {p.planned_s:>14.3f} {p.added_s:>9.3f}" for p in parses]
    if import_s is not None:
        lines += ["", f"Import beyond Airflow and its Spark provider: {import_s * 1000:.0f} ms of processor time"]
    return "\n".join(lines).lstrip("\n")


def _tell_case(found: Measured) -> Iterator[str]:
    count = len(next(iter(found.runs.values())))
    yield from ("", f"{found.label}: {found.steps} steps, {found.case.about}, {found.place}, median of {count}")
    yield f"  {'':26}{'seconds':>9}{'fastest':>9}{'slowest':>9}{'cpu s':>9}{'applications':>14}"
    for way, runs in found.runs.items():
        times = [run.seconds for run in runs]
        numbers = f"{found.seconds(way):>9.1f}{min(times):>9.1f}{max(times):>9.1f}{found.cpu_s(way):>9.1f}"
        yield f"  {NAMES[way]:26}{numbers}{runs[-1].applications:>14}"
    for way in found.runs:
        if later := found.later_intervals(way):
            yield f"  {NAMES[way]}, later intervals / the first = {later['seconds']:.2f} (cpu {later['cpu_s']:.2f})"
    yield from found.differences or ("  equal outputs",)


def _compare_cases(measured: Sequence[Measured]) -> Iterator[str]:
    """A line a ratio, a column a case and scale: what data that grows, or a cluster, changes is seen side by side."""
    there = [pair for pair in PAIRS if any(set(pair) <= found.runs.keys() for found in measured)]
    if there:
        yield from ("", "Medians of the rounds' ratios: seconds (cpu seconds)")
        yield f"  {'':52}" + "".join(f"{found.label:>16}" for found in measured)
    for one, other in there:
        name = f"{NAMES[one]} / {NAMES[other]}"
        yield f"  {name:52}" + "".join(f"{_tell_ratio(found, one, other):>16}" for found in measured)


def _tell_ratio(found: Measured, one: str, other: str) -> str:
    if not {one, other} <= found.runs.keys():
        return "-"
    return f"{found.ratio(one, other, 'seconds'):.2f} ({found.ratio(one, other, 'cpu_s'):.2f})"


class Results:
    """The JSON file, written anew whenever there is more: what an interruption ends is kept up to there."""

    def __init__(self, folder: Path, machine: dict[str, object]) -> None:
        now = datetime.now(UTC)
        self.file = folder / f"{now:%Y-%m-%dT%H%M%SZ}.json"
        self._content: dict[str, Any] = {"at": now.isoformat(timespec="seconds"), "machine": machine}

    def keep(self, **found: Any) -> None:
        """Put down what was measured by now."""
        self._content |= found
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self._content, indent=1, sort_keys=True) + "\n")


def as_json(parses: Sequence[Parse]) -> list[dict[str, float]]:
    """JSON values."""
    return [{"steps": p.steps, "plain_s": p.plain_s, "planned_s": p.planned_s, "added_s": p.added_s} for p in parses]
