"""Runs a case in each way, in turns, and keeps what was measured."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from benchmarks.cases import Case
from benchmarks.compare import difference
from benchmarks.places import Place
from benchmarks.ways import WAYS, Folders, Run, dataflow

Unit = Literal["seconds", "cpu_s"]
PAIRS = (
    ("planned", "by_hand"),
    ("planned_light", "by_hand_light"),
    ("planned_warming", "by_hand_light"),
    ("planned_warm", "by_hand_light"),
    ("planned_warming", "planned_light"),
    ("planned_warm", "planned_light"),
    ("per_step", "planned"),
    ("per_step", "planned_light"),
    ("per_step_by_hand", "planned_light"),
    ("per_step_by_hand", "planned_warm"),
)
"""Ways whose runs are divided: the second of each is what the first is held against."""


@dataclass(frozen=True, slots=True)
class Measured:
    """All runs of one case. ``differences`` is empty where all ways wrote the same."""

    case: Case
    steps: int
    runs: dict[str, tuple[Run, ...]]
    differences: tuple[str, ...]
    scale: float | None = None
    """Of its input, where there are several."""
    place: str = "local[2]"

    @property
    def label(self) -> str:
        """What heads its column."""
        return self.case.name if self.scale is None else f"{self.case.name} SF {self.scale:g}"

    def seconds(self, way: str) -> float:
        """Median over the repetitions."""
        return median(run.seconds for run in self.runs[way])

    def cpu_s(self, way: str) -> float:
        """Median over the repetitions."""
        return median(run.cpu_s for run in self.runs[way])

    def ratio(self, one: str, other: str, unit: Unit) -> float:
        """Median over the rounds of the one's share of the other, in the same round: so both had the same minutes."""
        pairs = zip(self.runs[one], self.runs[other], strict=True)
        shares: list[float] = [getattr(left, unit) / getattr(right, unit) for left, right in pairs]
        return median(shares)

    def ratios(self) -> dict[str, dict[Unit, float]]:
        """How often faster planned is than one submit per step, and what it costs beyond the program by hand."""
        there = [pair for pair in PAIRS if set(pair) <= self.runs.keys()]
        return {f"{one} / {other}": self._both(one, other) for one, other in there}

    def later_intervals(self, way: str) -> dict[Unit, float] | None:
        """What an interval after the first takes, as a share of the first: median. None where there is but one."""
        whole = [run.intervals for run in self.runs[way] if len(run.intervals) == len(self.case.intervals)]
        found = [(each, first) for first, *later in whole for each in later]
        if not found:
            return None
        seconds, cpu_s = (median(each[at] / first[at] for each, first in found) for at in (0, 1))
        return {"seconds": seconds, "cpu_s": cpu_s}

    def as_json(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "case": self.case.name,
            "about": self.case.about,
            "scale": self.scale,
            "place": self.place,
            "steps": self.steps,
            "median_s": {way: self.seconds(way) for way in self.runs},
            "median_cpu_s": {way: self.cpu_s(way) for way in self.runs},
            "ratios": self.ratios(),
            "later_intervals": {way: found for way in self.runs if (found := self.later_intervals(way))},
            "equal": not self.differences,
            "differences": self.differences,
            "runs": {way: [asdict(run) for run in runs] for way, runs in self.runs.items()},
        }

    def _both(self, one: str, other: str) -> dict[Unit, float]:
        return {"seconds": self.ratio(one, other, "seconds"), "cpu_s": self.ratio(one, other, "cpu_s")}


@dataclass(frozen=True, slots=True)
class Bench:
    """One case, and what it stands on."""

    case: Case
    place: Place
    data: Path
    scratch: Path
    scale: float | None = None

    def measure(self, ways: Sequence[str], repetitions: int) -> Iterator[Measured]:
        """Run it so often in each of ``ways``, in turns, so that a busy minute hits all alike; what there is by then,
        after each round.
        """
        folders = {way: Folders(self.data, self.scratch / way / "out", self.scratch / way / "work") for way in ways}
        runs: dict[str, tuple[Run, ...]] = dict.fromkeys(folders, ())
        flow = dataflow(self.case.dag_file, self.case.variables(self.data, self.scratch, self.scratch))
        differences: dict[str, None] = {}
        for _ in range(repetitions):
            for way, where in folders.items():
                shutil.rmtree(self.scratch / way, ignore_errors=True)
                runs[way] += (WAYS[way](self.case, where, self.place),)
                print(f"{self.case.name} {way}: {_tell(runs[way][-1])}", flush=True)
            differences |= dict.fromkeys(_list_differences(self.case, list(folders.values())))
            yield Measured(self.case, len(flow.steps), dict(runs), tuple(differences), self.scale, self.place.name)


def _tell(run: Run) -> str:
    return f"{run.seconds:.1f} s, {run.cpu_s:.1f} cpu s"


def _list_differences(case: Case, folders: list[Folders]) -> Iterator[str]:
    for other in folders[1:]:
        for table in case.reports:
            found = difference(folders[0].out / table, other.out / table)
            if found:
                yield f"{table}: {found}"
