"""What pruning saves: one day of the flights, and a day without any, with it and without.

    a day           what a plan asks of four workers, who hold the days in turn; what a run takes here
    an empty day    the same DAG, whose steps all say that they do no work without input

The same DAG file, input and settings each time; only ``prune`` differs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from msgspec.structs import replace as changed

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Block, Dataflow, Partition, Source
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Run as PlannedRun
from airflow_dagsched.plan.pruning import PruningInput, list_stored, name_interval
from airflow_dagsched.plan.pruning.tasks import scan_tasks
from airflow_dagsched.provider.clusters.folder_listing import FileLister
from benchmarks.cases import FLIGHTS, Case, make_day
from benchmarks.ways import Folders, Run, dataflow, pruned, unpruned

WORKERS = 4
DAY = datetime(2013, 1, 15, tzinfo=UTC)
AFTER_THE_LAST = datetime(2014, 1, 15, tzinfo=UTC)
WAYS = {"pruned": pruned, "whole": unpruned}


@dataclass(frozen=True, slots=True)
class Saved:
    """One kind of day, by way."""

    day: str
    executors: Mapping[str, int]
    cores: Mapping[str, int]
    runs: Mapping[str, tuple[Run, ...]]

    def cpu_s(self, way: str) -> float:
        """Median over the repetitions."""
        return median(run.cpu_s for run in self.runs[way])

    def as_json(self) -> dict[str, Any]:
        """JSON values."""
        runs = {way: [asdict(run) for run in found] for way, found in self.runs.items()}
        cpu = {way: self.cpu_s(way) for way in self.runs}
        return {**asdict(replace(self, runs={})), "median_cpu_s": cpu, "runs": runs}


def measure(data: Path, scratch: Path, repetitions: int) -> tuple[Saved, ...]:
    """Both days; the ways in turns."""
    return tuple(_day(of_day(start), data, scratch, repetitions) for start in (DAY, AFTER_THE_LAST))


def of_day(start: datetime) -> Case:
    """The flights' case for one day."""
    return replace(FLIGHTS, about=f"the flights of {start:%Y-%m-%d}", intervals=(make_day(start),))


def _day(case: Case, data: Path, scratch: Path, repetitions: int) -> Saved:
    runs: dict[str, list[Run]] = {way: [] for way in WAYS}
    for _ in range(repetitions):
        for way, run in WAYS.items():
            where = scratch / "pruning" / way
            shutil.rmtree(where, ignore_errors=True)
            runs[way].append(run(case, Folders(data, where / "out", where / "work")))
    flow = spread(dataflow(case.dag_file, case.variables(data, scratch, scratch)).dataflow, data / "flights")
    (interval,) = case.intervals
    names = name_interval(interval.start, interval.end, interval.key)
    asked = {"pruned": PruningInput(names=names), "whole": PruningInput(mode=False)}
    boxes = {
        way: plan(flow, cluster(), run=PlannedRun(how)).groups[0].containers if runs[way][-1].applications else ()
        for way, how in asked.items()
    }
    return Saved(
        interval.key,
        {way: len(found) for way, found in boxes.items()},
        {way: sum(box.cores for box in found) for way, found in boxes.items()},
        {way: tuple(found) for way, found in runs.items()},
    )


def cluster() -> Cluster:
    """Four workers of four cores."""
    workers = (Worker(id=f"w{at}", host=f"h{at}", cores=4, memory_mb=16_000) for at in range(WORKERS))
    return Cluster(manager="standalone", workers=tuple(workers))


def spread(flow: Dataflow, table: Path) -> Dataflow:
    """The dataflow with the days of ``table`` on the workers in turn, its scan as wide as all days have splits."""
    days = [stored.partition for stored in list_stored(*FileLister.of(str(table))).stored]
    held = tuple(_on(day, f"h{at % WORKERS}") for at, day in enumerate(days))
    source = Source(path=str(table), where="day >= interval.start and day < interval.end", partitions=held)
    wide = scan_tasks(days, 1) or 1
    steps = (
        changed(step, sources=(source,), parallelism=wide) if step.id == "departures" else step for step in flow.steps
    )
    return changed(flow, steps=tuple(steps))


def _on(day: Partition, host: str) -> Partition:
    return changed(day, blocks=tuple(Block(bytes=block.bytes, hosts=(host,)) for block in day.blocks))


def lines(saved: tuple[Saved, ...]) -> Iterator[str]:
    """Rows of a page."""
    yield f"{'Pruning, one day of the flights':34}{'executors':>10}{'cores':>7}{'cpu s':>8}{'applications':>14}"
    for found in saved:
        for way in WAYS:
            counts = f"{found.executors[way]:>10}{found.cores[way]:>7}{found.cpu_s(way):>8.1f}"
            yield f"  {found.day} {way:21}{counts}{found.runs[way][-1].applications:>14}"
