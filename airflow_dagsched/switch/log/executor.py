"""Whoever advances a switch: looks at the files, asks what is to be done, and does what it can.

Any number may do so at once, in drivers, launch tasks or commands; each may die at any line. What one adds to the log
is judged again whenever another was faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from airflow_dagsched.switch.advising.advance import LIMITS, advance
from airflow_dagsched.switch.advising.advice import Advice, Append, Command, FinishMoves, Hold, Limits, Wanted
from airflow_dagsched.switch.log.committed import list_committed
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.hold import hold_inboxes
from airflow_dagsched.switch.log.leases import list_held
from airflow_dagsched.switch.log.signs_files import read_ended, read_orders, read_paused, read_sign, read_starts
from airflow_dagsched.switch.log.spawned import is_starting
from airflow_dagsched.switch.log.standbys import find_standby
from airflow_dagsched.switch.places import INBOX_SERVICE, STANDBY, EpochPlaces, FlowPlaces
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.signs import Seen
from airflow_dagsched.switch.story import Story

T = TypeVar("T")
Ability = Callable[[Command], bool]
"""Does a command of one type; False: this one it can't do."""


class Executor:
    """One process's part in the switches of a flow.

    :param abilities: type of command -> how this process does it; it leaves those of other types to others.
    """

    def __init__(
        self,
        flow_folder: Path,
        abilities: Mapping[type, Ability],
        limits: Limits = LIMITS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.flow = FlowPlaces(flow_folder)
        self.log = FlowLog(self.flow.log, clock)
        self._abilities = abilities
        self._limits = limits
        self._clock = clock

    def step(self, wanted: Wanted | None = None) -> Advice:
        """Look once and do what is to be done now; what was advised. Raises ``GarbledLog``."""
        self.log.read()
        seen = look_at(self.flow, self.log.story, self._clock())
        advice = advance(self.log.story, seen, wanted, self._limits)
        for command in advice.commands:
            if isinstance(command, Append):
                self._append(command.record, seen, wanted)
            elif isinstance(command, Hold):
                hold_inboxes(self.flow, self.log, command.epoch)
            elif not self._do(command) and isinstance(command, FinishMoves):
                break  # what comes next says that it is done
        self.log.compact()
        return advice

    def _do(self, command: Command) -> bool:
        do = self._abilities.get(type(command))
        return do is not None and do(command)

    def _append(self, record: Record, seen: Seen, wanted: Wanted | None) -> None:
        """Add the record, or whatever is advised in its place by those that came before it."""

        def make(story: Story, n: int, at: float) -> Record | None:
            # What has to be done before another kind of record was not done by us.
            again = advance(story, seen, wanted, self._limits).record
            is_same = again is not None and type(again) is type(record)
            return replace(again, at=at) if again is not None and is_same else None

        self.log.append(make)


def look_at(flow: FlowPlaces, story: Story, now: float) -> Seen:
    """What is to be seen beside the log of its epochs that may still run, at ``now``, seconds since 1970."""
    newest = max(story.epochs, default=0)
    living = [each.record for number, each in story.epochs.items() if number == newest or not each.has_ended]
    places = {record.epoch: flow.name_epoch(record.x_folder) for record in living}
    if story.reads_inbox:
        places[INBOX_SERVICE] = flow.inbox_service
    standby = find_standby(flow) if story.wants_standby else None
    if standby is not None:
        places[STANDBY] = standby
    # Until it has its lease, a driver that starts works for its epoch all the same: nobody is to start another.
    starting = {number for number, each in places.items() if is_starting(each, now)}
    return Seen(
        now=now,
        held=list_held(flow, places, now) | starting,
        signs=_read_each(places, read_sign),
        ended=_read_each(places, read_ended),
        starts=_read_each(places, read_starts),
        orders={number: read_orders(each) for number, each in places.items()},
        committed=list_committed(flow, story),
        paused=read_paused(places[newest]) if newest else frozenset(),
    )


def _read_each(places: Mapping[int, EpochPlaces], read: Callable[[EpochPlaces], T | None]) -> dict[int, T]:
    found = {number: read(each) for number, each in places.items()}
    return {number: value for number, value in found.items() if value is not None}
