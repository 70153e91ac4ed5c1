"""A stream with several versions of its graph, from its first file to its last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.records import Batch, Current, Fence, Record, Started, Stopped
from tests.proof.bulk import Owned, StagedFile
from tests.proof.supply import Supply
from tests.streams.kit import Driver, Flow, Graph

R = TypeVar("R", bound=Record)
DEADLINE_S = 600.0
"""For whatever is waited for: batches are large, and whoever runs this may do something else beside it."""


@dataclass(frozen=True)
class Version:
    """An epoch, and what it makes of the rows."""

    graph: Graph
    place: float
    """Part of the files that have come when it is asked for."""
    factor: int = 1
    """See ``Owned``, as the next one."""
    without: str = ""


class Play:
    """Asks for one version after another; a driver runs all whose application is the same.

    :param staged: files that are to come.
    """

    def __init__(self, flow: Flow, staged: Sequence[StagedFile], versions: Sequence[Version], undo: ExitStack) -> None:
        self.flow = flow
        self.settings = versions[0].graph.settings
        self.supply = Supply(flow, staged, self.settings.lateness_s, self._list_readers)
        self._staged = staged
        self._versions = versions
        self._undo = undo

    def run(self) -> None:
        """Until the last epoch has emitted all windows that are closed by the files."""
        driver, conf = self._start(self._ask(1)), self._versions[0].graph.conf
        if self.settings.channel == "inbox":
            self._start(self.flow.places.inbox_service)
        for epoch, version in list(enumerate(self._versions, 1))[1:]:
            self._feed(driver, version.place)
            places = self._ask(epoch)
            if version.graph.conf != conf:
                driver, conf = self._start_beside(driver, places, epoch), version.graph.conf
            self._hand_over(driver, epoch)
        self._feed(driver, 1.0)
        self._wait_for(driver, lambda: self.flow.find_watermark(len(self._versions)) >= self.closed)
        assert driver.stop() == 0

    @property
    def closed(self) -> float:
        """All windows up to this are closed by the files, in seconds since 1970."""
        return self.supply.find_watermark(len(self._staged))

    def _ask(self, epoch: int) -> EpochPlaces:
        return self.flow.ask(self._versions[epoch - 1].graph)

    def _start(self, places: EpochPlaces) -> Driver:
        return self._undo.enter_context(self.flow.run(places))

    def _start_beside(self, old: Driver, places: EpochPlaces, epoch: int) -> Driver:
        """The driver of an application of its own, as soon as there is room for it."""
        if self.settings.overlap == "sequential":
            self._wait_for(old, lambda: self._has(Stopped, epoch - 1))
        return self._start(places)

    def _feed(self, driver: Driver, part: float) -> None:
        """Until so many files have come."""
        while len(self.supply.given) < round(part * len(self._staged)):
            before = len(self.supply.given)
            self._wait_for(driver, lambda before=before: len(self.supply.given) > before)

    def _hand_over(self, driver: Driver, epoch: int) -> None:
        """Until the epoch is the owner, and has windows of its own."""
        for kind, which in ((Started, epoch), (Current, epoch), (Stopped, epoch - 1)):
            self._wait_for(driver, lambda kind=kind, which=which: self._has(kind, which))
        behind = self._list(Fence)[-1].upto + self.settings.window_s
        self._wait_for(driver, lambda: self.flow.find_watermark(epoch) >= behind)

    def _wait_for(self, driver: Driver, is_so: Callable[[], bool]) -> None:
        driver.wait_for(self.supply.until(is_so), DEADLINE_S)

    def _list_readers(self) -> list[int]:
        """Who must have read what is there before more comes."""
        owners = [each.epoch for each in self._list(Current)]
        # Behind a hold alone a new graph has rows of an inbox.
        return owners[-1:] if owners and self.settings.channel == "inbox" else self.flow.list_running()

    def _list(self, kind: type[R]) -> list[R]:
        return [each for each in self.flow.read() if isinstance(each, kind)]

    def _has(self, kind: type[Started | Current | Stopped], epoch: int) -> bool:
        return any(each.epoch == epoch for each in self._list(kind))

    # --- what came of it

    def list_owned(self) -> list[Owned]:
        """Whose windows are whose, up to the last one that is closed."""
        fences = [each.upto for each in self._list(Fence)]
        closed = self.closed // self.settings.window_s * self.settings.window_s
        ends = zip([0.0, *fences], [*fences, closed], self._versions, strict=True)
        return [Owned(after, upto, each.factor, each.without) for after, upto, each in ends]

    def list_applications(self) -> list[str]:
        """Of each epoch, the one it ran in."""
        return [each.application for each in self._list(Started)]

    def count_late(self) -> list[int]:
        """Of each epoch, what came too late."""
        epochs = range(1, len(self._versions) + 1)
        return [max(each.x_late for each in self.flow.list_batches(epoch)) for epoch in epochs]

    def tell(self) -> str:
        """Batches, and windows with rows in the table, of each epoch."""
        epochs = [self.flow.list_batches(epoch) for epoch in range(1, len(self._versions) + 1)]
        batches = [sum(1 for each in epoch if each.rows) for epoch in epochs]
        return f"{batches} batches with sums, {self._count_windows()} windows"

    def _count_windows(self) -> list[int]:
        begin = min(each.first for each in self._list(Batch) if each.first is not None) - self.settings.window_s
        owned = self.list_owned()
        return [round((each.upto - max(each.after, begin)) / self.settings.window_s) for each in owned]
