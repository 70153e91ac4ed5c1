"""Runs a case in each way, in turns, and keeps what was measured."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cases import Case
from benchmarks.compare import difference
from benchmarks.ways import WAYS, Folders, Run, dataflow


@dataclass(frozen=True, slots=True)
class Measured:
    """All runs of one case. ``differences`` is empty where all ways wrote the same."""

    case: Case
    steps: int
    runs: dict[str, tuple[Run, ...]]
    differences: tuple[str, ...]

    def seconds(self, way: str) -> float:
        """Median over the repetitions."""
        return median(run.seconds for run in self.runs[way])

    def cpu_s(self, way: str) -> float:
        """Median over the repetitions."""
        return median(run.cpu_s for run in self.runs[way])

    def ratios(self) -> dict[str, float]:
        """How often faster planned is than one submit per step, and what it costs beyond the program by hand."""
        alike = ("planned", "by_hand"), ("planned_light", "by_hand_light")
        pairs = (("per_step", "planned"), ("per_step", "planned_light"), *alike)
        there = [pair for pair in pairs if set(pair) <= self.runs.keys()]
        return {f"{one} / {other}": self.seconds(one) / self.seconds(other) for one, other in there}

    def as_json(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "case": self.case.name,
            "about": self.case.about,
            "steps": self.steps,
            "median_s": {way: self.seconds(way) for way in self.runs},
            "median_cpu_s": {way: self.cpu_s(way) for way in self.runs},
            "ratios": self.ratios(),
            "equal": not self.differences,
            "differences": self.differences,
            "runs": {way: [asdict(run) for run in runs] for way, runs in self.runs.items()},
        }


def measure(case: Case, data: Path, scratch: Path, ways: Iterable[str], repetitions: int) -> Measured:
    """Run ``case`` so often in each of ``ways``; in turns, so that a busy minute hits all alike."""
    folders = {way: Folders(data, scratch / way / "out", scratch / way / "work") for way in ways}
    runs: dict[str, list[Run]] = {way: [] for way in folders}
    for _ in range(repetitions):
        for way, where in folders.items():
            shutil.rmtree(scratch / way, ignore_errors=True)
            runs[way].append(WAYS[way](case, where))
            print(f"{case.name} {way}: {runs[way][-1].seconds:.1f} s", flush=True)
    steps = len(dataflow(case.dag_file, case.variables(data, scratch, scratch)).steps)
    every = {way: tuple(found) for way, found in runs.items()}
    return Measured(case, steps, every, tuple(_differences(case, list(folders.values()))))


def _differences(case: Case, folders: list[Folders]) -> Iterator[str]:
    for other in folders[1:]:
        for table in case.reports:
            found = difference(folders[0].out / table, other.out / table)
            if found:
                yield f"{table}: {found}"
