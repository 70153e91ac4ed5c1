"""A flow in a folder of its own, whose log a test writes by hand: epochs, fences and what else others would add."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces, name_flow
from airflow_dagsched.switch.records import Batch, Record
from tests.switch.drawn import make_batch, make_current, make_epoch, make_started


class Flow:
    """Of windows of ten seconds, with one query named ``out``."""

    def __init__(self, folder: Path) -> None:
        self.places: FlowPlaces = name_flow(folder, "dag", "flow")
        self.log = self.open_log()

    def open_log(self) -> FlowLog:
        """A reader and writer of its own, as each thread has."""
        return FlowLog(self.places.log, clock=lambda: 0.0)

    def add(self, *records: Record) -> None:
        for record in records:
            made = self.log.append(lambda story, n, at, record=record: replace(record, n=n, at=at))
            assert made is not None

    def begin(self) -> None:
        """The first epoch runs."""
        self.add(make_epoch(1), make_started(1))

    def request(self, epoch: int, **fields: object) -> None:
        """The next epoch runs beside the first, whose batch 0, without rows, makes it the owner."""
        self.add(make_batch(epoch - 1, 0), make_current(epoch - 1), make_epoch(epoch, **fields), make_started(epoch))

    def get_epoch(self, epoch: int) -> EpochPlaces:
        return self.places.name_epoch(f"{epoch:08x}")

    def list_batches(self) -> list[Batch]:
        """All that are recorded, in order."""
        return [each for each in self.open_log().read() if isinstance(each, Batch)]
