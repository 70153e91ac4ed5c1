"""Leases: who may write an output of an interval now, so that no two drivers work on it at once.

::

    <work_dir>/leases/<output>/<interval>/0000000001.json     run A, expires 12:00:40
                                          0000000002.json  <- run A's next try: try 1 is fenced

The highest generation holds the lease. Its holder moves ``expires`` on, four times in ``lease_s``; a file
with a higher number fences it, which it notices at its next renewal or commit. Leases save work; that no
older writer wins is up to the commit (``commits``), which is refused if another was made since the lease.

Clocks: ``expires`` is compared with another machine's ``time.time``. They may differ by ``lease_s / 4``, the
time a lease is still respected after it has expired.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal

from airflow_dagsched.launch.keys import safe
from airflow_dagsched.launch.wire import decode, encode
from airflow_dagsched.spark.commits import WriteRefused
from airflow_dagsched.spark.store import Entry, Store, join

log = logging.getLogger(__name__)

_LEASE = re.compile(r"(\d{10})\.json")
RELEASED = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """Who asks. Of one run the later try is the one that counts."""

    run_id: str
    clear_number: int
    try_number: int
    nonce: str
    """Tells drivers of one try apart."""


UNREADABLE = Claim("(not readable)", 0, 0, "")
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


def judge(held: Lease | None, me: Claim, now: float, margin_s: float) -> Literal["take", "wait", "stale"]:
    """What to do about the lease that is ``held``: take the next generation, wait, or give up as the older try."""
    if held is None or held.expires == RELEASED or now > held.expires + margin_s:
        return "take"
    if held.claim.run_id != me.run_id or held.claim.nonce == me.nonce:
        return "wait"
    theirs, ours = [(claim.clear_number, claim.try_number) for claim in (held.claim, me)]
    return "stale" if theirs > ours else "take"


class Keeper:
    """The leases of one driver, renewed by one thread while it holds any."""

    def __init__(
        self,
        store: Store,
        work_dir: str,
        *,
        run_id: str,
        try_number: int,
        clear_number: int = 0,
        lease_s: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._root = join(work_dir, "leases")
        self.claim = Claim(run_id, clear_number, try_number, uuid.uuid4().hex)
        self._lease_s = lease_s
        self._clock = clock
        self._held: dict[tuple[str, str], Lease] = {}
        self._guard = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self.lost: str | None = None
        """Why this driver must stop writing: a lease it held is another's. None while all is well."""

    def acquire(self, output: str, interval: str) -> Lease:
        """Take the lease; wait while another run, or another thread, holds it.

        Raises ``LeaseLost`` if a later try of this run holds it, or the keeper is closed.
        """
        waiting = False
        while not self._closed.is_set():
            held = self.newest(output, interval)
            verdict = judge(held, self.claim, self._clock(), self._lease_s / 4)
            if verdict == "stale":
                raise LeaseLost(output, interval, "a later try of the same run has taken over")
            if verdict == "take" and (lease := self._take(output, interval, held)) is not None:
                return lease
            if verdict == "wait" and held is not None and not waiting:
                log.info("%s, interval %s: waiting for run %s to write it", output, interval, held.claim.run_id)
                waiting = True
            self._closed.wait(min(1.0, self._lease_s / 20))
        raise LeaseLost(output, interval, "the driver is stopping")

    @contextmanager
    def holding(self, output: str, interval: str) -> Iterator[Lease]:
        """Hold the lease while the block runs."""
        lease = self.acquire(output, interval)
        try:
            yield lease
        finally:
            self.release(lease)

    def check(self, lease: Lease) -> None:
        """Raise ``LeaseLost`` unless ``lease`` is still the newest; one that expired untaken still is."""
        reason = self._fenced(lease)
        if reason is not None:
            raise LeaseLost(lease.output, lease.interval, reason)

    def release(self, lease: Lease) -> None:
        """Give the lease back at once; one that was lost is let go of."""
        with self._guard:
            self._held.pop((lease.output, lease.interval), None)
        with suppress(OSError):
            if self._fenced(lease) is None:
                self._write(replace(lease, expires=RELEASED))

    def close(self) -> None:
        """Give all leases back and end the thread; who waits for a lease gets ``LeaseLost``."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        for lease in tuple(self._held.values()):
            self.release(lease)

    def newest(self, output: str, interval: str) -> Lease | None:
        """The lease of the highest generation; one whose text is torn lasts from its file's date."""
        folder = self._folder(output, interval)
        found = [(int(match[1]), each) for each in self._store.list(folder) if (match := _LEASE.fullmatch(each.name))]
        return self._read(folder, output, interval, *max(found, key=lambda each: each[0])) if found else None

    def _read(self, folder: str, output: str, interval: str, generation: int, entry: Entry) -> Lease:
        try:
            return decode(Lease, json.loads(self._store.read_text(join(folder, entry.name))))
        except (FileNotFoundError, ValueError, TypeError):
            return Lease(output, interval, generation, UNREADABLE, entry.modified_ns / 1e9 + self._lease_s)

    def _take(self, output: str, interval: str, held: Lease | None) -> Lease | None:
        """The next generation, or None if another was faster."""
        generation = held.generation + 1 if held else 1
        lease = Lease(output, interval, generation, self.claim, self._clock() + self._lease_s)
        if not self._store.create_exclusive(self._path(lease), json.dumps(encode(lease))):
            return None
        with self._guard:
            self._held[output, interval] = lease
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew_until_closed, name="dagsched-leases", daemon=True)
                self._thread.start()
        if held is not None:
            self._store.delete(self._path(held))
        return lease

    def _fenced(self, lease: Lease) -> str | None:
        newest = self.newest(lease.output, lease.interval)
        if newest is None:
            return "its lease file was removed"
        if newest.generation == lease.generation and newest.claim.nonce in (self.claim.nonce, UNREADABLE.nonce):
            return None  # a torn text is our own renewal, half written
        return f"run {newest.claim.run_id}, try {newest.claim.try_number}, has taken the lease"

    def _renew_until_closed(self) -> None:
        while not self._closed.wait(self._lease_s / 4):
            self.renew()

    def renew(self) -> None:
        """Renew all held leases once; sets ``lost`` if one is another's, or could not be renewed in time."""
        for lease in tuple(self._held.values()):
            try:
                reason = self._fenced(lease)
                if reason is None:
                    self._extend(lease)
            except OSError as error:
                log.warning("%s: the lease was not renewed: %s", lease.output, error)
                late = self._clock() > lease.expires
                reason = f"its lease could not be renewed in {self._lease_s:g} s: {error}" if late else None
            if reason is not None and self._holds(lease):
                self.lost = str(LeaseLost(lease.output, lease.interval, reason))

    def _extend(self, lease: Lease) -> None:
        """Under the guard: a lease released meanwhile stays released."""
        with self._guard:
            key = (lease.output, lease.interval)
            if self._held.get(key) is lease:
                self._held[key] = replace(lease, expires=self._clock() + self._lease_s)
                self._write(self._held[key])

    def _holds(self, lease: Lease) -> bool:
        held = self._held.get((lease.output, lease.interval))
        return held is not None and held.generation == lease.generation

    def _write(self, lease: Lease) -> None:
        self._store.write_text(self._path(lease), json.dumps(encode(lease)))

    def _folder(self, output: str, interval: str) -> str:
        return join(self._root, safe(output), safe(interval))

    def _path(self, lease: Lease) -> str:
        return join(self._folder(lease.output, lease.interval), f"{lease.generation:010d}.json")
