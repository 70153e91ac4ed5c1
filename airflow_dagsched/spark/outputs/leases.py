"""Leases: who may write an output of an interval now, so that no two drivers work on it at once.

::

    <home>/leases/<output>/<interval>/0000000001.json     run A, expires 12:00:40
                                      0000000002.json  <- run A's next try: try 1 is fenced

The highest generation holds the lease. Its holder moves ``expires`` on, four times in ``lease_s``; a file
with a higher number fences it, which it notices at its next renewal or commit. What it commits carries the
lease's generation (``commits``), so an older holder's record, however late, is never the newest.

A number is taken for good: one that was taken and removed long ago may be created again by a driver that was
frozen meanwhile, so who has created one looks again whether it came right after the one that was judged, and after all
records, and gives it up if not.

Clocks: ``expires`` is compared with another machine's clock. They may differ by ``lease_s / 4``, the
time a lease is still respected after it has expired.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass
from airflow_dagsched.spark.files.clock import MACHINE, Clock
from airflow_dagsched.spark.files.store import Entry, Store, join_path
from airflow_dagsched.spark.outputs.commits import CommitLog, CommitRefused, Committed, WriteRefused

log = logging.getLogger(__name__)

_LEASE = re.compile(r"(\d{10})\.json")
RELEASED = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """Who asks. Of one launch task of one run the later try is the one that counts."""

    run_id: str
    try_id: TryId
    nonce: str
    """Tells drivers of one try apart."""
    task: str = ""
    """``dag/dataflow/group``: tries, and run ids, of different launch tasks have no order."""
    process: str = ""
    """By which others may see that it is gone; empty: its leases run out."""

    def is_same_task(self, other: Claim) -> bool:
        """Whether both are tries of one launch task of one run."""
        return (self.run_id, self.task) == (other.run_id, other.task)


UNREADABLE = Claim("(not readable)", TryId(), "")
"""Holder of a lease whose text is torn."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write one output of one interval."""

    output: str
    interval: str
    generation: int
    claim: Claim
    expires: float
    """Seconds since 1970; ``RELEASED`` once given back."""


@dataclass
class LeaseLost(WriteRefused):
    """This driver is not, or no longer, the writer."""

    output: str
    interval: str
    reason: str

    def __str__(self) -> str:
        return f"{self.output}, interval {self.interval}: this driver may not write it: {self.reason}"


Verdict = Literal["take", "wait", "stale"]


def judge_lease(held: Lease | None, me: Claim, now: float, margin_s: float) -> Verdict:
    """What to do about the lease that is ``held``: take the next generation, wait, or give up as the older try.

    Between tries of one launch task it makes no difference whether it was given back: the later one is the writer.
    """
    if held is None:
        return "take"
    if held.claim.is_same_task(me) and held.claim.nonce != me.nonce:
        # Also of the same try: its earlier driver is another process, and the one that asks later lives.
        return "stale" if held.claim.try_id > me.try_id else "take"
    # The margin is for two machines' clocks.
    return "take" if held.expires == RELEASED or now > held.expires + margin_s else "wait"


class Keeper:
    """The leases of one driver, renewed by one thread while it holds any."""

    def __init__(
        self,
        commits: CommitLog,
        *,
        run_id: str,
        try_id: TryId = TryId(),  # noqa: B008 - frozen
        task: str = "",
        lease_s: float = 60.0,
        clock: Clock = MACHINE,
        kind: str = "leases",
        process: str = "",
    ) -> None:
        self._commits = commits
        self._kind = kind
        self.claim = Claim(run_id, try_id, uuid.uuid4().hex, task, process)
        self._lease_s = lease_s
        self._clock = clock
        self._held: dict[tuple[str, str], Lease] = {}
        self._reserved: dict[tuple[str, str], Lease] = {}
        self._guard = threading.Lock()
        self._closed = False
        self._end_renewal: Callable[[], None] | None = None
        self.lost: str | None = None
        """Why this driver must stop writing: a lease it held is another's. None while all is well."""

    def acquire_lease(self, output: str, interval: str) -> Lease:
        """Take the lease; wait while another run, or another thread, holds it.

        Raises ``LeaseLost`` if a later try of this launch task held or committed it, or the keeper is closed.
        """
        waiting = False
        while not self._closed:
            held = self.find_newest(output, interval)
            verdict = self._judge_held(output, interval, held)
            lease = self._take_lease(output, interval, held) if verdict == "take" else None
            if lease is not None and self._is_stale(output, interval):  # it stood still before it took the lease
                self.release_lease(lease)
                verdict = "stale"
            elif lease is not None:
                return lease
            if verdict == "stale":
                raise LeaseLost(output, interval, "a later try of the same run has taken over")
            if verdict == "wait" and held is not None and not waiting:
                log.info("%s, interval %s: waiting for run %s to write it", output, interval, held.claim.run_id)
                waiting = True
            # Seldom enough for a listing each time, on an object store too.
            self._clock.sleep(min(1.0, self._lease_s / 60))
        raise LeaseLost(output, interval, "the driver is stopping")

    def _judge_held(self, output: str, interval: str, held: Lease | None) -> Verdict:
        """As ``judge_lease``, and by records: between this try and a later one another run may have had the lease."""
        verdict = judge_lease(held, self.claim, self._clock.now(), self._lease_s / 4)
        return "stale" if verdict == "take" and self._is_stale(output, interval) else verdict

    def _is_stale(self, output: str, interval: str) -> bool:
        """Whether a later try committed: nothing of this one may come after it."""
        made = self._commits.find_of_task(output, interval, self.claim.run_id, self.claim.task)
        return made is not None and made.try_id > self.claim.try_id

    def reserve_lease(self, output: str, interval: str) -> None:
        """Take now the lease that ``holding`` will hold."""
        self._reserved[output, interval] = self.acquire_lease(output, interval)

    def give_up(self, output: str, interval: str) -> None:
        """Give a reserved lease back that nothing was written under."""
        lease = self._reserved.pop((output, interval), None)
        if lease is not None:
            self.release_lease(lease)

    @contextmanager
    def hold_lease(self, output: str, interval: str) -> Iterator[Lease]:
        """Hold the lease, or the one that was reserved, while the block runs."""
        lease = self._reserved.pop((output, interval), None) or self.acquire_lease(output, interval)
        try:
            yield lease
        finally:
            self.release_lease(lease)

    def advance_lease(self, lease: Lease) -> Lease:
        """The next generation in place of ``lease``, whose record's number is taken. Raises ``LeaseLost``."""
        self.check_lease(lease)
        taken = self._take_lease(lease.output, lease.interval, lease)
        if taken is None:
            raise LeaseLost(lease.output, lease.interval, "another driver has just taken the lease")
        return taken

    def check_lease(self, lease: Lease) -> None:
        """Raise ``LeaseLost`` unless ``lease`` is still the newest; one that expired untaken still is.

        A later try may have lost it to this one, while its text was torn, and commit under its lock all the same.
        """
        reason = self._explain_fenced(lease)
        if reason is None and self._is_stale(lease.output, lease.interval):
            reason = "a later try of the same run has committed"
        if reason is not None:
            raise LeaseLost(lease.output, lease.interval, reason)

    def release_lease(self, lease: Lease) -> None:
        """Give the lease, or the one it was advanced to, back at once; one that was lost is let go of."""
        with self._guard:
            # Out of the held ones first: a renewal that is on its way then leaves it alone.
            held = self._held.pop((lease.output, lease.interval), lease)
        with suppress(OSError):
            if self._explain_fenced(held) is None:
                # If this fails, the lease runs out by itself.
                self._write_lease(replace(held, expires=RELEASED))

    def close(self) -> None:
        """Give all leases back and end the thread; who waits for a lease gets ``LeaseLost``."""
        self._closed = True
        if self._end_renewal is not None:
            # Not under the guard: it waits for a renewal that may be at work, which takes the guard.
            self._end_renewal()
        for lease in tuple(self._held.values()):
            self.release_lease(lease)

    def find_newest(self, output: str, interval: str) -> Lease | None:
        """The lease of the highest generation; one whose text is torn lasts from its file's date."""
        found = self._find_newest_file(output, interval)
        return self._read_lease(output, interval, *found) if found is not None else None

    def is_newest(self, lease: Lease) -> bool:
        """Whether no lease came after it; the file is not read. Numbers are not used again where nothing is removed."""
        found = self._find_newest_file(lease.output, lease.interval)
        return found is not None and found[0] == lease.generation

    def _find_newest_file(self, output: str, interval: str) -> tuple[int, Entry] | None:
        return max(self._list_files(output, interval), key=lambda each: each[0], default=None)

    def _list_files(self, output: str, interval: str) -> list[tuple[int, Entry]]:
        store, folder = self._find_place(output, interval)
        return [(int(match[1]), each) for each in store.list(folder) if (match := _LEASE.fullmatch(each.name))]

    def _read_lease(self, output: str, interval: str, generation: int, entry: Entry) -> Lease:
        store, folder = self._find_place(output, interval)
        with suppress(FileNotFoundError):
            lease = parse_dataclass(Lease, store.read_text(join_path(folder, entry.name)))
            # A text with another number in it was not written for this file.
            if lease is not None and lease.generation == generation:
                return lease
        return Lease(output, interval, generation, UNREADABLE, entry.modified_ns / 1e9 + self._lease_s)

    def _take_lease(self, output: str, interval: str, held: Lease | None) -> Lease | None:
        """The next generation, or None if another was faster."""
        store, _ = self._find_place(output, interval)
        last = self._commits.get_last_generation(output, interval)
        # Above the records, too: where leases were cleaned away, numbers grow on.
        generation = max(held.generation if held else 0, last) + 1
        lease = Lease(output, interval, generation, self.claim, self._clock.now() + self._lease_s)
        # The taking: of all that saw the same lease one makes the next number.
        if not store.create_exclusive(self._get_path(lease), json.dumps(encode_plain(lease))):
            return None
        # A number that was used and cleaned away can be made again by one who was frozen meanwhile.
        if self._is_late(lease, held):
            store.delete(self._get_path(lease))
            return None
        with self._guard:
            self._held[output, interval] = lease
            if self._end_renewal is None:
                # Three renewals may fail before the lease runs out.
                self._end_renewal = self._clock.every(self._lease_s / 4, self.renew_leases, "dagsched-leases")
        # Fenced by the new number: left there, the folder would grow by a file with each write.
        if held is not None:
            store.delete(self._get_path(held))
        return lease

    def _is_late(self, lease: Lease, held: Lease | None) -> bool:
        """Whether another took the lease between the look at the one that is ``held`` and this one, with a number above
        or, where ``clean`` has removed what there was, below.
        """
        others = [number for number, _ in self._list_files(lease.output, lease.interval) if number != lease.generation]
        last = self._commits.get_last_generation(lease.output, lease.interval)
        return max(others, default=0) != (held.generation if held else 0) or last >= lease.generation

    def _explain_fenced(self, lease: Lease) -> str | None:
        newest = self.find_newest(lease.output, lease.interval)
        if newest is None:
            return "its lease file was removed"
        if newest.generation == lease.generation and newest.claim.nonce in (self.claim.nonce, UNREADABLE.nonce):
            return None  # a torn text is our own renewal, half written
        return f"run {newest.claim.run_id}, try {newest.claim.try_id.try_number}, has taken the lease"

    def renew_leases(self) -> None:
        """Renew all held leases once; sets ``lost`` if one is another's, or could not be renewed in time."""
        for lease in tuple(self._held.values()):
            try:
                reason = self._explain_fenced(lease)
                if reason is None:
                    self._extend_lease(lease)
            except OSError as error:
                log.warning("%s: the lease was not renewed: %s", lease.output, error)
                # One that fails is no loss: only from its end on may others take the lease.
                late = self._clock.now() > lease.expires
                reason = f"its lease could not be renewed in {self._lease_s:g} s: {error}" if late else None
            # Not if it was given back while we looked.
            if reason is not None and self._holds_lease(lease):
                self.lost = str(LeaseLost(lease.output, lease.interval, reason))

    def _extend_lease(self, lease: Lease) -> None:
        """Under the guard: a lease released meanwhile stays released."""
        with self._guard:
            key = (lease.output, lease.interval)
            if self._held.get(key) is lease:
                self._held[key] = replace(lease, expires=self._clock.now() + self._lease_s)
                self._write_lease(self._held[key])

    def _holds_lease(self, lease: Lease) -> bool:
        held = self._held.get((lease.output, lease.interval))
        return held is not None and held.generation == lease.generation

    def _write_lease(self, lease: Lease) -> None:
        store, _ = self._find_place(lease.output, lease.interval)
        store.write_text(self._get_path(lease), json.dumps(encode_plain(lease)))

    def _find_place(self, output: str, interval: str) -> tuple[Store, str]:
        home = self._commits.homes.of(output)
        return home.store, home.get_folder(self._kind, output, interval)

    def _get_path(self, lease: Lease) -> str:
        return join_path(self._find_place(lease.output, lease.interval)[1], f"{lease.generation:010d}.json")


def commit_next(commits: CommitLog, keeper: Keeper, committed: Committed, lease: Lease) -> Committed:
    """Commit under the number of ``lease``, or the next one that is free. Raises ``LeaseLost``."""
    while True:
        keeper.check_lease(lease)
        # A number that was refused is gone for good: the same data, under the next, as long as the lease is ours.
        committed = replace(committed, generation=lease.generation)
        try:
            commits.commit_record(committed)
        except CommitRefused:
            lease = keeper.advance_lease(lease)
        else:
            return committed
