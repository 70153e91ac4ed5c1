"""The event loop: what ends, fails, is lost or becomes due at a moment comes before anything starts at it."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.simulate.backfill import Ending, room_at
from airflow_dagsched.plan.simulate.jobs import Jobs, Place, jobs_of
from airflow_dagsched.plan.simulate.luck import NEVER, Luck, draw
from airflow_dagsched.plan.simulate.rank import ranks
from airflow_dagsched.plan.simulate.room import Moves, Room
from airflow_dagsched.plan.simulate.values import Conditions, Outcome, Policy, Ran, Work

LOOK_AHEAD = 16
"""So many groups without room are passed over, at most, to find one that has: keeps long queues cheap."""
END, FAIL, ARRIVE, LOSE = range(4)
"""What happens, in this order where it happens at one moment."""


def simulate(
    works: Sequence[Work],
    cluster: Cluster,
    conditions: Conditions,
    policy: Policy,
    settings: Settings = DEFAULTS,
) -> Outcome:
    """One run of plans that ``check`` accepts, all of them on one cluster.

    Raises ``InvalidInput`` for a plan with a worker the cluster has not, or jobs that wait for each other.
    """
    jobs = jobs_of(works, cluster, settings)
    luck = draw(jobs, len(cluster.workers), conditions)
    run = _Run(jobs, luck, policy, conditions.retries, Room(cluster), ranks(jobs, policy.order), list(jobs.waits_for))
    run.begin(works)
    while run.open:
        run.step()
    return _outcome(run, works, cluster)


@dataclass(slots=True)
class _Run:
    """The state between two events."""

    jobs: Jobs
    luck: Luck
    policy: Policy
    retries: int
    room: Room
    ranks: Sequence[tuple[float, ...]]
    waits: list[int]
    events: list[tuple[float, int, int, int]] = field(default_factory=list)
    """A heap of time, what, job or worker, and the job's attempt."""
    open: int = 0
    """Events but losses: when there are none, nothing will end or start any more."""
    waiting: list[tuple[float, ...]] = field(default_factory=list)
    """Rank, when it became ready, and number of each job without room, negated: the first to start comes last."""
    attempts: dict[int, int] = field(default_factory=dict)
    ready: dict[int, float] = field(default_factory=dict)
    running: dict[int, tuple[float, Sequence[Place]]] = field(default_factory=dict)
    """When it started, and what it holds."""
    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    ends: list[tuple[float, int, int]] = field(default_factory=list)
    """A heap of planned ends, number and attempt of what runs, where room is reserved."""
    reservation: tuple[int, float] | None = None
    """The group that is first in line, and when it will have room."""
    held: float = 0.0
    """Core-seconds."""
    stopped: float = 0.0
    """When the last attempt ended, well or not."""
    retried: int = 0

    def begin(self, works: Sequence[Work]) -> None:
        for worker, seconds in enumerate(self.luck.losses):
            if seconds < NEVER:
                heapq.heappush(self.events, (seconds, LOSE, worker, 0))
        for number, count in enumerate(self.waits):
            if not count:
                self._free(number, works[self.jobs.all[number].work].at_s)

    def step(self) -> None:
        """All events of the next moment, then what can start."""
        now = self.events[0][0]
        while self.events and self.events[0][0] == now:
            _, what, number, attempt = heapq.heappop(self.events)
            self.open -= what != LOSE
            if what == LOSE:
                self._lose(number, now)
            elif what == ARRIVE:
                self._arrive(number, now)
            elif number in self.running and attempt == self.attempts[number]:
                self._end(number, now) if what == END else self._fail(number, now)
        self._start_waiting(now)

    def _free(self, number: int, now: float) -> None:
        """Nothing above it is left to end; as planned, a group also waits for its time."""
        job = self.jobs.all[number]
        self.ready[number] = now
        due = max(now, job.due_s) if self.policy.order == "plan" else now
        self._push(due, ARRIVE, number)

    def _arrive(self, number: int, now: float) -> None:
        if self.jobs.all[number].places:
            insort(self.waiting, (*self.ranks[number], -self.ready[number], -number))
        else:
            self._start(number, now, ())

    def _start_waiting(self, now: float) -> None:
        """Until ``by`` the room that the first in line waits for is not needed."""
        at, passed, by = len(self.waiting) - 1, 0, NEVER
        while at >= 0 and passed <= (0 if self.policy.overtaking == "none" else LOOK_AHEAD):
            number = int(-self.waiting[at][-1])
            if now + self.jobs.all[number].seconds <= by and self._try(number, now):
                del self.waiting[at]
            else:
                if not passed and self.policy.overtaking == "harmless":
                    by = self._reserved(number)
                passed += 1
            at -= 1

    def _try(self, number: int, now: float) -> bool:
        job = self.jobs.all[number]
        moves: Moves = "none" if job.pinned else "any" if self.policy.moves else "lost"
        places = self.room.take(job.places, moves=moves)
        if places is not None:
            self._start(number, now, places)
        return places is not None

    def _reserved(self, number: int) -> float:
        """When a group will have room, found once for each that is first in line."""
        if self.reservation is None or self.reservation[0] != number:
            places = self.jobs.all[number].places
            seen: list[tuple[float, int, int]] = []
            by = room_at(self.room.missing(places), places[0][1], self.room.free, self._ending(seen))
            for entry in seen:
                heapq.heappush(self.ends, entry)
            self.reservation = number, by
        return self.reservation[1]

    def _ending(self, seen: list[tuple[float, int, int]]) -> Iterator[Ending]:
        """Take what runs off the heap of planned ends, the first first, and note it; what has ended is dropped."""
        while self.ends:
            end, number, attempt = entry = heapq.heappop(self.ends)
            if number in self.running and self.attempts[number] == attempt:
                seen.append(entry)
                yield end, self.running[number][1]

    def _start(self, number: int, now: float, places: Sequence[Place]) -> None:
        attempt = self.attempts.get(number, 0)
        self.attempts[number] = attempt
        self.running[number] = now, places
        seconds, failures = self.luck.seconds[number], self.luck.failures[number]
        if self.policy.overtaking == "harmless" and places:
            heapq.heappush(self.ends, (now + self.jobs.all[number].seconds, number, attempt))
        fails = bool(failures) and failures[attempt] < seconds
        self._push(now + (failures[attempt] if fails else seconds), FAIL if fails else END, number)

    def _end(self, number: int, now: float) -> None:
        self.spans[number] = self._stop(number, now), now
        for after in self.jobs.successors[number]:
            self.waits[after] -= 1
            if not self.waits[after]:
                self._free(after, now)

    def _fail(self, number: int, now: float) -> None:
        """What it held is free at once; it is tried again from its start, if not too often already."""
        self._stop(number, now)
        self.attempts[number] += 1
        if self.attempts[number] <= self.retries:
            self.retried += 1
            self._arrive(number, now)

    def _lose(self, worker: int, now: float) -> None:
        hit = [number for number, (_, places) in self.running.items() if any(at == worker for at, _ in places)]
        self.room.lose(worker)
        for number in sorted(hit):
            self._fail(number, now)

    def _stop(self, number: int, now: float) -> float:
        """Give back its room; returns when the attempt started."""
        start, places = self.running.pop(number)
        self.room.give(places)
        self.stopped = now
        self.held += (now - start) * sum(need[0] for _, need in places)
        return start

    def _push(self, time: float, what: int, number: int) -> None:
        heapq.heappush(self.events, (time, what, number, self.attempts.get(number, 0)))
        self.open += 1


def _outcome(run: _Run, works: Sequence[Work], cluster: Cluster) -> Outcome:
    jobs = run.jobs.all
    ran = tuple(_ran(run, number) for number in range(len(jobs)) if number in run.spans)
    offered = zip(cluster.workers, run.luck.losses, strict=True)
    available = sum(worker.free_cores * min(lost, run.stopped) for worker, lost in offered)
    return Outcome(
        ran,
        tuple((job.work, job.id) for number, job in enumerate(jobs) if number not in run.spans),
        _completions(run, works),
        max((one.end_s for one in ran), default=0.0),
        run.held / available if available else 0.0,
        run.retried,
        sum(lost <= run.stopped for lost in run.luck.losses),
    )


def _ran(run: _Run, number: int) -> Ran:
    job, (start, end) = run.jobs.all[number], run.spans[number]
    return Ran(job.work, job.id, run.ready[number], start, end, run.attempts[number] + 1)


def _completions(run: _Run, works: Sequence[Work]) -> tuple[float | None, ...]:
    ends: list[float | None] = [work.at_s for work in works]
    for number, job in enumerate(run.jobs.all):
        before = ends[job.work]
        if number not in run.spans:
            ends[job.work] = None
        elif before is not None:
            ends[job.work] = max(before, run.spans[number][1])
    return tuple(None if end is None else end - work.at_s for end, work in zip(ends, works, strict=True))
