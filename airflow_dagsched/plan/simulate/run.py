"""The event loop: what ends, fails, is lost or becomes due at a moment comes before anything starts at it."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from msgspec import Struct, field
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.simulate.backfill import Ending, find_room_time
from airflow_dagsched.plan.simulate.foresee import MOST, OVERDUE, Forecast, choose_best, make_forecast
from airflow_dagsched.plan.simulate.jobs import Jobs, Place, make_jobs
from airflow_dagsched.plan.simulate.modelled_capacity import Moves, Room
from airflow_dagsched.plan.simulate.rank import rank_jobs
from airflow_dagsched.plan.simulate.sampled_conditions import NEVER, Luck, draw_luck
from airflow_dagsched.plan.simulate.values import Conditions, Order, Outcome, Policy, Ran, Work

LOOK_AHEAD = 16
"""So many groups without room are passed over, at most, to find one that has: keeps long queues cheap."""
END, FAIL, ARRIVE, LOSE = range(4)
"""What happens, in this order where it happens at one moment."""


def simulate_works(
    works: Sequence[Work],
    cluster: Cluster,
    conditions: Conditions,
    policy: Policy,
    settings: Settings = DEFAULTS,
) -> Outcome:
    """One run of plans that ``check`` accepts, all of them on one cluster.

    Raises ``InvalidInput`` for a plan with a worker the cluster has not, or jobs that wait for each other.
    """
    jobs = make_jobs(works, cluster, settings)
    luck = draw_luck(jobs, len(cluster.workers), conditions)
    # Each event plays all rivals to the end: the effort grows with the square of the jobs.
    rivals = policy.rivals if len(jobs.all) <= MOST else ()
    # Ranks follow from the plans alone: every forecast of this run may share them.
    ranked = cache(lambda order: rank_jobs(jobs, order))
    run = _Run(works, jobs, luck, policy, (policy, *rivals), conditions.retries, Room(cluster), ranked)
    run.push_first_events()
    run.run_to_end()
    return _make_outcome(run, cluster)


class _Run(Struct):
    """The state between two events."""

    works: Sequence[Work]
    jobs: Jobs
    luck: Luck
    policy: Policy
    """The one in force."""
    policies: tuple[Policy, ...]
    """What may be in force."""
    retries: int
    room: Room
    ranked: Callable[[Order], Sequence[tuple[float, ...]]]
    waits: list[int] = field(default_factory=list)
    """Of each job, how many it waits for still."""
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
    patience: dict[int, float] = field(default_factory=dict)
    """Until when a group that waits may be passed over, where policies are played through."""
    held: float = 0.0
    """Core-seconds."""
    stopped: float = 0.0
    """When the last attempt ended, well or not."""
    retried: int = 0

    def push_first_events(self) -> None:
        self.waits = list(self.jobs.waits_for)
        for worker, seconds in enumerate(self.luck.losses):
            # A loss that never comes must not be an event: it would keep the heap, and the run, alive.
            if seconds < NEVER:
                heapq.heappush(self.events, (seconds, LOSE, worker, 0))
        for number, count in enumerate(self.waits):
            if not count:
                self._release_job(number, self.works[self.jobs.all[number].work].at_s)

    def run_to_end(self) -> None:
        while self.open:
            self.advance_time()

    def advance_time(self) -> None:
        """All events of the next moment, then what can start."""
        now = self.events[0][0]
        while self.events and self.events[0][0] == now:
            _, what, number, attempt = heapq.heappop(self.events)
            # Losses do not count: when all jobs have ended, a worker that is lost later is nobody's business.
            self.open -= what != LOSE
            if what == LOSE:
                self._lose_worker(number, now)
            elif what == ARRIVE:
                self._add_to_waiting(number, now)
            # The end of an attempt that has failed meanwhile is still on the heap, and means nothing.
            elif number in self.running and attempt == self.attempts[number]:
                self._end_job(number, now) if what == END else self._fail_job(number, now)
        # Behind all events of the moment: half of them would show a room that nobody will have.
        if self.waiting and len(self.policies) > 1:
            self._choose_policy(now)
        self._start_waiting(now)

    def _choose_policy(self, now: float) -> None:
        """The policy to follow from now on."""
        eligible = self.policies
        if self._is_out_of_patience(now):
            eligible = tuple(policy for policy in eligible if policy.order == "fifo")
        # Out of patience a rival in force is not eligible: the first one there is replaces it.
        in_force = eligible.index(self.policy) if self.policy in eligible else 0
        self._follow_policy(
            eligible[choose_best([self._forecast_policy(policy, now) for policy in eligible], in_force)]
        )

    def _is_out_of_patience(self, now: float) -> bool:
        """Whether somebody has waited for longer than all that was left when it came took one after another."""
        jobs = self.jobs.all
        waiting = [int(-entry[-1]) for entry in self.waiting]
        left = (at for at in range(len(jobs)) if at not in self.spans and self.works[jobs[at].work].at_s <= now)
        patience = now + sum(jobs[at].seconds for at in left)
        # Set once, when a group is first seen waiting: later works must not extend it.
        return min(self.patience.setdefault(number, patience) for number in waiting) < now

    def _find_planned_end(self, number: int, now: float) -> float:
        seconds = self.jobs.all[number].seconds
        end = self.running[number][0] + seconds
        # What is overdue must end after now, or the forecast would start others in its place at once.
        return end if end > now else now + OVERDUE * seconds

    def _forecast_policy(self, policy: Policy, now: float) -> Forecast:
        """What comes of a policy for the works submitted by now, if what runs and waits takes as long as planned."""
        calm = Luck([job.seconds for job in self.jobs.all], [()] * len(self.jobs.all), ())
        ahead = replace(
            self,
            luck=calm,
            policies=(policy,),  # a forecast does not forecast
            room=self.room.make_copy(),
            waits=self.waits.copy(),
            events=[],
            open=0,
            waiting=self.waiting.copy(),
            attempts=self.attempts.copy(),
            ready=self.ready.copy(),
            running=self.running.copy(),
            spans=self.spans.copy(),
            ends=self.ends.copy(),
        )
        for number in self.running:
            ahead._push_event(self._find_planned_end(number, now), END, number)
        ahead._follow_policy(policy)
        ahead._start_waiting(now)
        ahead.run_to_end()
        ends = zip(self.works, _list_completions(ahead), strict=True)
        return make_forecast([end for work, end in ends if work.at_s <= now])

    def _follow_policy(self, policy: Policy) -> None:
        """From now on."""
        if policy != self.policy:
            self.policy, self.reservation = policy, None
            # Another policy, another rank: the order of waiting is made anew.
            self.waiting = sorted(self._rank_turn(int(-entry[-1])) for entry in self.waiting)
            running = [(number, start) for number, (start, places) in self.running.items() if places]
            self.ends = [(start + self.jobs.all[at].seconds, at, self.attempts[at]) for at, start in running]
            heapq.heapify(self.ends)

    def _rank_turn(self, number: int) -> tuple[float, ...]:
        # Negated, for the list is sorted upwards and taken from its end: earlier, and smaller numbers, come last.
        return *self.ranked(self.policy.order)[number], -self.ready[number], -number

    def _release_job(self, number: int, now: float) -> None:
        """Nothing above it is left to end; as planned, a group also waits for its time."""
        job = self.jobs.all[number]
        self.ready[number] = now
        due = max(now, job.due_s) if self.policy.order == "plan" else now
        self._push_event(due, ARRIVE, number)

    def _add_to_waiting(self, number: int, now: float) -> None:
        if self.jobs.all[number].places:
            insort(self.waiting, self._rank_turn(number))
        else:
            self._start_job(number, now, ())

    def _start_waiting(self, now: float) -> None:
        """Until ``by`` the room that the first in line waits for is not needed."""
        at, passed, by = len(self.waiting) - 1, 0, NEVER
        while at >= 0 and passed <= (0 if self.policy.overtaking == "none" else LOOK_AHEAD):
            number = int(-self.waiting[at][-1])
            # Whoever ends before the reserved room is needed may overtake (EASY backfilling).
            if now + self.jobs.all[number].seconds <= by and self._try_start(number, now):
                del self.waiting[at]  # from the end on: deleting moves nothing that is still to be looked at
            else:
                if not passed and self.policy.overtaking == "harmless":
                    by = self._find_reservation(number)
                passed += 1
            at -= 1

    def _try_start(self, number: int, now: float) -> bool:
        job = self.jobs.all[number]
        # Pinned containers wait for their workers, even for ones that are lost: then the work stays unfinished.
        moves: Moves = "none" if job.pinned else "any" if self.policy.moves else "lost"
        places = self.room.take_room(job.places, moves=moves)
        if places is not None:
            self._start_job(number, now, places)
        return places is not None

    def _find_reservation(self, number: int) -> float:
        """When a group will have room, found once for each that is first in line."""
        if self.reservation is None or self.reservation[0] != number:
            places = self.jobs.all[number].places
            seen: list[tuple[float, int, int]] = []
            by = find_room_time(
                self.room.count_missing(places), places[0][1], self.room.get_free, self._take_ending(seen)
            )
            for entry in seen:
                heapq.heappush(self.ends, entry)  # looking is not taking: what runs still runs
            self.reservation = number, by
        return self.reservation[1]

    def _take_ending(self, seen: list[tuple[float, int, int]]) -> Iterator[Ending]:
        """Take what runs off the heap of planned ends, the first first, and note it; what has ended is dropped."""
        while self.ends:
            end, number, attempt = entry = heapq.heappop(self.ends)
            # Entries of attempts that ended early are dropped here, lazily: a heap has no removal.
            if number in self.running and self.attempts[number] == attempt:
                seen.append(entry)
                yield end, self.running[number][1]

    def _start_job(self, number: int, now: float, places: Sequence[Place]) -> None:
        attempt = self.attempts.get(number, 0)
        self.attempts[number] = attempt
        self.running[number] = now, places
        seconds, failures = self.luck.seconds[number], self.luck.failures[number]
        if self.policy.overtaking == "harmless" and places:
            heapq.heappush(self.ends, (now + self.jobs.all[number].seconds, number, attempt))
        # Drawn for each attempt before the run, so that no policy has better luck than another.
        fails = bool(failures) and failures[attempt] < seconds
        self._push_event(now + (failures[attempt] if fails else seconds), FAIL if fails else END, number)

    def _end_job(self, number: int, now: float) -> None:
        self.spans[number] = self._stop_job(number, now), now
        for after in self.jobs.successors[number]:
            self.waits[after] -= 1
            if not self.waits[after]:
                self._release_job(after, now)

    def _fail_job(self, number: int, now: float) -> None:
        """What it held is free at once; it is tried again from its start, if not too often already."""
        self._stop_job(number, now)
        self.attempts[number] += 1
        if self.attempts[number] <= self.retries:
            self.retried += 1
            self._add_to_waiting(number, now)

    def _lose_worker(self, worker: int, now: float) -> None:
        hit = [number for number, (_, places) in self.running.items() if any(at == worker for at, _ in places)]
        self.room.lose_worker(worker)
        # Sorted: what fails first is queued first, and a dict's order is that of starts.
        for number in sorted(hit):
            self._fail_job(number, now)

    def _stop_job(self, number: int, now: float) -> float:
        """Give back its room; returns when the attempt started."""
        start, places = self.running.pop(number)
        self.room.give_back(places)
        self.stopped = now
        self.held += (now - start) * sum(need[0] for _, need in places)
        return start

    def _push_event(self, time: float, what: int, number: int) -> None:
        heapq.heappush(self.events, (time, what, number, self.attempts.get(number, 0)))
        self.open += 1


def _make_outcome(run: _Run, cluster: Cluster) -> Outcome:
    jobs = run.jobs.all
    ran = tuple(_describe_job(run, number) for number in range(len(jobs)) if number in run.spans)
    offered = zip(cluster.workers, run.luck.losses, strict=True)
    # A lost worker offers nothing after its loss: its idle cores are no waste.
    available = sum(worker.free_cores * min(lost, run.stopped) for worker, lost in offered)
    return Outcome(
        ran,
        tuple((job.work, job.id) for number, job in enumerate(jobs) if number not in run.spans),
        _list_completions(run),
        max((one.end_s for one in ran), default=0.0),
        run.held / available if available else 0.0,
        run.retried,
        sum(lost <= run.stopped for lost in run.luck.losses),
    )


def _describe_job(run: _Run, number: int) -> Ran:
    job, (start, end) = run.jobs.all[number], run.spans[number]
    return Ran(job.work, job.id, run.ready[number], start, end, run.attempts[number] + 1)


def _list_completions(run: _Run) -> tuple[float | None, ...]:
    works = run.works
    ends: list[float | None] = [work.at_s for work in works]
    for number, job in enumerate(run.jobs.all):
        before = ends[job.work]
        if number not in run.spans:
            ends[job.work] = None
        elif before is not None:
            ends[job.work] = max(before, run.spans[number][1])
    return tuple(None if end is None else end - work.at_s for end, work in zip(ends, works, strict=True))
