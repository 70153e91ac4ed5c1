"""Starts the driver program of an epoch, from nothing but the epoch's private folder, where no application that runs
takes its graph.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import subprocess
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.protocol.manifest import PAYLOAD_KEY
from airflow_dagsched.launch.secrecy.private_files import check_folder
from airflow_dagsched.launch.streams.difference import needs_application
from airflow_dagsched.launch.streams.manifest import StreamManifest, read_stream_manifest
from airflow_dagsched.launch.streams.private_folder import read_private_payload, read_start_command
from airflow_dagsched.provider.streaming.standbys.make_folder import FindRoom, find_any_room, make_standby_folder
from airflow_dagsched.provider.submission.started_settings import settle_command
from airflow_dagsched.switch.advising.advice import Deploy
from airflow_dagsched.switch.advising.situation import can_stop, count_start
from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.leases import list_held
from airflow_dagsched.switch.log.signs_files import read_ended, read_starts, remove_order, write_starts
from airflow_dagsched.switch.log.spawned import is_starting, write_spawned
from airflow_dagsched.switch.log.standbys import find_standby, is_kept_away, make_standby
from airflow_dagsched.switch.places import INBOX_SERVICE, STANDBY, EpochPlaces, FlowPlaces
from airflow_dagsched.switch.signs import LONGEST_WAIT_S, Ended, Seen, Starts
from airflow_dagsched.switch.story import EpochStory, Story
from airflow_dagsched.version import __version__

_CHILDREN: list[subprocess.Popen[bytes]] = []
"""Of this process, so that one that ends meanwhile is buried; they go on without it."""


def start_detached(places: EpochPlaces, work_dir: Path) -> int:
    """Start the driver as a process that outlives this one; its number.

    Raises :class:`LaunchRefused` where others than this user may have written what it runs.
    """
    check_folder(places.private, work_dir, places.folder.name)
    starts = read_starts(places)
    # What comes to nothing may do so over an archive that a disk has spoiled, of which Java says nothing.
    is_first = starts is None or starts.count <= 1
    command = settle_command(places.private, read_start_command(places.private), has_archives=is_first)
    # Its user's alone: Spark prints what it meets, secrets included.
    places.output.parent.mkdir(mode=0o700, exist_ok=True)
    # Appended, so that the driver may cut the file short while it writes; no pipe, which would end with this process.
    with os.fdopen(os.open(places.output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as output:
        child = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env={**os.environ, **command.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _CHILDREN[:] = [*(each for each in _CHILDREN if each.poll() is None), child]
    return child.pid


@dataclass(frozen=True, slots=True)
class Starter:
    """Starts the drivers of a flow, each time a bit later while nothing comes of it."""

    flow: FlowPlaces
    tell_story: Callable[[], Story]
    """What the log says now."""
    clock: Callable[[], float]
    start: Callable[[EpochPlaces, Path], int] = field(default=start_detached)
    find_room: FindRoom = field(default=find_any_room)
    """Where a standby goes."""

    def deploy(self, command: Deploy) -> bool:
        """Start the epoch's driver, unless it is too early, or a driver that lives does; an ability of an executor."""
        if self.clock() < command.not_before:
            return False
        if command.epoch == INBOX_SERVICE:
            return self._start_inbox()
        if command.epoch == STANDBY:
            return self._start_standby()
        epoch = self.tell_story().epochs.get(command.epoch)
        if epoch is None:
            return False
        seen = look_at(self.flow, self.tell_story(), self.clock())
        if self._leaves_to_another(epoch, seen):
            return False
        self.start_epoch(epoch)
        return True

    def _leaves_to_another(self, epoch: EpochStory, seen: Seen) -> bool:
        """Whether the driver that has an application for it takes the epoch: it looks at the log every second."""
        number = epoch.record.epoch
        ended = seen.ended.get(number)
        # It has said that it can't, or it leaves what was stopped to whoever wants it to run again.
        if epoch.stopped is not None or (ended is not None and ended.kind == "refused"):
            return False
        return find_application(self.flow, self.tell_story(), seen.held, number) is not None

    def resume(self, epoch: EpochStory) -> None:
        """Start an epoch that someone had stopped, or that was given up after so many starts: they begin anew."""
        places = self.flow.name_epoch(epoch.record.x_folder)
        places.starts.unlink(missing_ok=True)
        self.start_epoch(epoch)

    def start_epoch(self, epoch: EpochStory) -> None:
        """Start the epoch's driver now, if none works for it or starts already."""
        places, now = self.flow.name_epoch(epoch.record.x_folder), self.clock()
        with self._claim_start(places, epoch.record.epoch) as is_free:
            if not is_free:
                return
            if epoch.stopped is not None:
                self._take_stop_back(epoch)
            # Before the start: one that kills whoever starts it must not go on for ever.
            write_starts(places, count_start(epoch, read_starts(places), now))
            self._spawn(places, now)

    def _start_inbox(self) -> bool:
        places, now = self.flow.inbox_service, self.clock()
        with self._claim_start(places, INBOX_SERVICE) as is_free:
            if is_free:
                write_starts(places, count_again(read_starts(places), read_ended(places), now))
                self._spawn(places, now)
            return is_free

    @contextmanager
    def _claim_start(self, places: EpochPlaces, number: int) -> Iterator[bool]:
        """Whether a driver is still to be started, which nobody else does meanwhile: the tasks of both graphs may see
        at one moment that it is missing, and two drivers at once would be in each other's way.
        """
        places.folder.mkdir(parents=True, exist_ok=True)
        with places.starting.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel's: a process that dies lets go
            _bury_children()
            now = self.clock()
            yield not (is_starting(places, now) or list_held(self.flow, (number,), now))

    def _start_standby(self) -> bool:
        with self._claim_start(EpochPlaces(self.flow.standbys), STANDBY) as is_free:
            return is_free and self._start_next_standby()

    def _start_next_standby(self) -> bool:
        owner, now = self.tell_story().old, self.clock()
        before = find_standby(self.flow)
        if owner is None or (before is not None and (is_starting(before, now) or is_kept_away(before, now))):
            return False
        count = Starts(0, now) if before is None else count_again(read_starts(before), read_ended(before), now)
        with suppress(FileExistsError):  # another process makes it
            places = make_standby(self.flow)
            write_starts(places, count)
            is_made = make_standby_folder(self.flow.name_epoch(owner.record.x_folder), places, self.find_room, now)
            if is_made:
                self._spawn(places, now)
            return is_made
        return False

    def _spawn(self, places: EpochPlaces, now: float) -> None:
        # How the last one ended is no news of this one.
        places.exit.unlink(missing_ok=True)
        write_spawned(places, self.start(places, self.flow.folder.parents[2]), now)

    def _take_stop_back(self, epoch: EpochStory) -> None:
        """Of the epoch, and of the one that begins when this one has ended."""
        after = self.tell_story().epochs.get(epoch.out.to) if epoch.out else None
        waiting = [after] if after is not None and not can_stop(after) and after.begun is None else []
        for each in (epoch, *waiting):
            remove_order(self.flow.name_epoch(each.record.x_folder), "stop")


def count_again(before: Starts | None, ended: Ended | None, now: float) -> Starts:
    """The starts after each other of what has no batches in the flow's log, with one more at ``now``."""
    has_worked = before is None or (ended is not None and ended.batches > 0) or now - before.at > 2 * LONGEST_WAIT_S
    return Starts(1 if has_worked or before is None else before.count + 1, now)


def _bury_children() -> None:
    for child in _CHILDREN:
        child.poll()


def find_application(flow: FlowPlaces, story: Story, held: Collection[int], epoch: int) -> int | None:
    """An epoch whose driver lives, and takes ``epoch`` into its application; None: it needs one of its own.

    :param held: epochs that a driver works for.
    """
    others = sorted(other for other in held if other != epoch and other in story.epochs)
    wanted = read_manifest(flow, story, epoch) if others else None
    if wanted is None:
        return None
    found = ((other, read_manifest(flow, story, other)) for other in others)
    return next((other for other, mine in found if mine is not None and not needs_application(mine, wanted)), None)


def locate_epoch(flow: FlowPlaces, story: Story, epoch: int) -> EpochPlaces:
    """Where the files of an epoch are, or of what stands for one."""
    return flow.inbox_service if epoch == INBOX_SERVICE else flow.name_epoch(story.epochs[epoch].record.x_folder)


def read_manifest(flow: FlowPlaces, story: Story, epoch: int) -> StreamManifest | None:
    """None where it can't be had, or believed: whoever starts the epoch says why."""
    try:
        return read_private_manifest(locate_epoch(flow, story, epoch), flow.folder.parents[2])
    except (OSError, ValueError, LookupError, LaunchRefused, pickle.UnpicklingError):
        return None


def read_private_manifest(places: EpochPlaces, work_dir: Path) -> StreamManifest:
    """The epoch's manifest, secrets included. Raises what is wrong with it, or with who may have written it."""
    check_folder(places.private, work_dir, places.folder.name)
    content = pickle.loads(read_private_payload(places.private))
    return read_stream_manifest(content[PAYLOAD_KEY].decode(), __version__)
