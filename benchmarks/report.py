"""Measurements as a page to read, and as a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.home import MASTER
from benchmarks.measure import Measured
from benchmarks.parse_time import Parse
from benchmarks.pruning import Saved

NAMES = {
    "per_step": "one submit per step",
    "planned": "planned",
    "by_hand": "hand-written application",
    "planned_light": "planned, quick, archive",
    "by_hand_light": "by hand, quick, archive",
}


def page(measured: Sequence[Measured], parses: Sequence[Parse], import_s: float | None) -> str:
    """Tables of medians and ratios."""
    lines = [line for found in measured for line in _case(found)]
    if parses:
        lines += ["", "Parse, processor seconds   plain operators   with planner     added"]
        lines += [f"  {p.steps:>5} steps {p.plain_s:>28.3f} {p.planned_s:>14.3f} {p.added_s:>9.3f}" for p in parses]
    if import_s is not None:
        lines += ["", f"Import beyond Airflow and its Spark provider: {import_s * 1000:.0f} ms of processor time"]
    return "\n".join(lines).lstrip("\n")


def _case(found: Measured) -> Iterator[str]:
    count = len(next(iter(found.runs.values())))
    yield from ("", f"{found.case.name}: {found.steps} steps, {found.case.about}, {MASTER}, median of {count}")
    yield f"  {'':26}{'seconds':>9}{'fastest':>9}{'slowest':>9}{'cpu s':>9}{'applications':>14}"
    for way, runs in found.runs.items():
        times = [run.seconds for run in runs]
        numbers = f"{found.seconds(way):>9.1f}{min(times):>9.1f}{max(times):>9.1f}{found.cpu_s(way):>9.1f}"
        yield f"  {NAMES[way]:26}{numbers}{runs[-1].applications:>14}"
    yield from (f"  {name} = {value:.2f}" for name, value in found.ratios().items())
    yield from found.differences or ("  equal outputs",)


def write(
    folder: Path,
    machine: dict[str, object],
    measured: Sequence[Measured],
    parses: Sequence[Parse],
    import_s: float | None,
    saved: Sequence[Saved] = (),
) -> Path:
    """Write all of it as ``<folder>/<time>.json``; returns the file."""
    now = datetime.now(UTC)
    parse = [{"steps": p.steps, "plain_s": p.plain_s, "planned_s": p.planned_s, "added_s": p.added_s} for p in parses]
    content = {
        "at": now.isoformat(timespec="seconds"),
        "machine": machine,
        "master": MASTER,
        "cases": [found.as_json() for found in measured],
        "parse": parse,
        "import_s": import_s,
        "pruning": [found.as_json() for found in saved],
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{now:%Y-%m-%dT%H%M%SZ}.json"
    file.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    return file
