"""Drivers, as those who may be killed: of one epoch, of several in one application, of what fills inboxes."""

from __future__ import annotations

import time

from airflow_dagsched.switch.log.signs_files import read_sign
from airflow_dagsched.switch.places import INBOX_SERVICE, EpochPlaces
from tests.faults.play import Play
from tests.streams.kit import Driver, wait_until


class DriverActor:
    """The application of some epochs: a driver is started for the first of them that is to run.

    :param name: as what it is killed.
    :param epochs: all of them run in one application, if there are several.
    """

    def __init__(self, play: Play, name: str, *epochs: int) -> None:
        self._play = play
        self._name = name
        self._epochs = epochs
        self._driver: Driver | None = None
        self._began = 0.0
        """When it was started last, in seconds since 1970."""

    def go_on(self) -> None:
        """See ``Actor``."""
        places = None if self._is_alive() else self._find_due()
        if places is None:
            return
        if self._driver is not None:
            # Once started again Spark ends no window before new rows come, and the feed waits for that.
            self._play.feed.add()
        self._began = time.time()
        self._driver = self._play.undo.enter_context(self._play.flow.run(places))

    def _find_due(self) -> EpochPlaces | None:
        """What it is started on; None: nothing is to run."""
        due = sorted(self._play.list_due().intersection(self._epochs))
        return self._play.locate(due[0]) if due else None

    def _is_alive(self) -> bool:
        return self._driver is not None and self._driver.is_alive()

    def settle(self) -> None:
        """See ``Actor``."""
        if self._driver is not None:
            self.go_on()
            wait_until(lambda: not self._is_alive() or self._is_at_work(), lambda: f"{self}")

    def kill(self) -> list[str]:
        """See ``Actor``."""
        if self._driver is None or not self._is_alive():
            return []
        self._driver.kill()
        return [self._name]

    def _is_at_work(self) -> bool:
        signs = map(read_sign, self._list_places())
        return any(sign is not None and sign.at >= self._began for sign in signs)

    def _list_places(self) -> list[EpochPlaces]:
        return [self._play.locate(epoch) for epoch in self._epochs if self._play.find(epoch) is not None]

    def rename(self, name: str) -> DriverActor:
        """The same one, which is killed as another from now on."""
        self._name = name
        return self

    def stop(self) -> None:
        """Ask it to end after its batch, and wait for it."""
        assert self._driver is not None
        assert self._driver.stop() == 0, f"{self}"

    def __repr__(self) -> str:
        return self._driver.read_output()[-2500:] if self._driver is not None else "not started"


class ServiceActor(DriverActor):
    """What fills the inboxes."""

    def _find_due(self) -> EpochPlaces | None:
        return self._play.flow.places.inbox_service if INBOX_SERVICE in self._play.list_due() else None

    def _list_places(self) -> list[EpochPlaces]:
        return [self._play.flow.places.inbox_service]
