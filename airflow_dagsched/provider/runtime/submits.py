"""Which steps each submit of a try runs: nearly always all of the group in one. Nobody else knows of escalation (more
memory, smaller parts), of cutting for a small cluster, and of retries after an application has lost its workers.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from airflow.sdk.exceptions import AirflowException

from airflow_dagsched.errors import DagschedError, DoesNotFit
from airflow_dagsched.launch.escalation.split_group import RunsInParts, Unit, cut_after_memory, cut_group, discount_done
from airflow_dagsched.launch.escalation.stranded import Stranded
from airflow_dagsched.launch.moves.elsewhere import list_behind
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.launch.protocol.feed import GREEN
from airflow_dagsched.launch.protocol.printable import format_duration
from airflow_dagsched.plan.report.words import format_size
from airflow_dagsched.provider.runtime.allocation import gather_facts_of_run
from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.runtime.moves import (
    LeftToOthers,
    begin_steps,
    give_back_taken,
    has_own_ended,
    has_taken,
    offer_steps,
    wait_for_awaited,
)
from airflow_dagsched.provider.runtime.takeover import take_more
from airflow_dagsched.provider.submission.spark_submit import ArchiveBroken

log = logging.getLogger(__name__)


class Submits:
    """The submits of one try, in order. What one of them turns out to need is done in its place, before the others."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._begun: set[str] = set()
        """Steps of submits so far."""
        self._start()

    def _start(self) -> None:
        self._level = self._attempt.memory.level
        self._left = deque(list_submits(self._attempt, list_ready(self._attempt)))

    def __iter__(self) -> Iterator[Unit]:
        attempt = self._attempt
        yield from self._take_left()
        # What others run, and what is behind it: nothing, where launch tasks run their own steps alone.
        while attempt.moves is not None and attempt.moves.awaited:
            wait_for_awaited(attempt)
            # A mirror may be green by now: its step need not run again, whatever was cleared meanwhile.
            attempt.look_anew()
            self._left.extend(list_submits(attempt, [s for s in list_ready(attempt) if s not in self._begun]))
            yield from self._take_left()
        # Its own are done: what became ready meanwhile, before the task ends.
        while more := take_more(attempt):
            self._left.extend(list_submits(attempt, more))
            yield from self._take_left()

    def _take_left(self) -> Iterator[Unit]:
        while self._left:
            targets = begin_steps(self._attempt, self._left.popleft())
            self._begun |= {*targets}
            if targets:
                yield targets

    @contextmanager
    def escalating(self, targets: Unit) -> Iterator[None]:
        """The submit of ``targets`` inside: what it fails with may lead to others, and is no failure then."""
        attempt = self._attempt
        try:
            yield
        except LeftToOthers as left:
            log.info("%s", left)
            self._begun -= {*targets}
            self._left.appendleft(targets)
        except (Stranded, DagschedError, AirflowException) as error:
            self._begun -= {*targets}
            # What fails with steps of others in it may fail because of them: that is not for this task to end with.
            if has_taken(attempt) and not attempt.standing.lost and not attempt.launch.stopped:
                attempt.note_cut(f"what it has taken is left to other launch tasks: {error}")
                self._start_over()
            else:
                self._escalate(targets, error)

    def _escalate(self, targets: Unit, error: Exception) -> None:
        attempt = self._attempt
        match error:
            case DoesNotFit():
                self._cut(targets, error)
            case RunsInParts():
                attempt.note_cut(str(error))
                self._add_parts(error.cut.parts)
            case Stranded():
                attempt.note_cut(str(error))
                attempt.stranded += 1
                attempt.follower.forget_failed()
                self._left.appendleft(targets)
            case ArchiveBroken():
                # Not the same submit: its driver has begun its file of events, and taken its private files away.
                log.info("the driver is started again: Java crashed over the archive of its classes, which is gone")
                self._left.appendleft(targets)
            # The level rises where memory ran out, and only there: anything else is the end of the try.
            case AirflowException() if attempt.memory.level != self._level and not attempt.launch.stopped:
                log.warning("%s", error)
                attempt.note_cut(f"out of memory: tried again with {attempt.level}")
                self._start_over()
            case _:
                raise error

    def _cut(self, targets: Unit, refused: DoesNotFit) -> None:
        attempt = self._attempt
        cut = cut_group(attempt.flow.list_units(targets), _gather_facts(attempt))
        parts = cut.parts
        if len(parts) == 1:
            raise refused
        spilled = f"; spills {format_size(cut.spilled_bytes)} between them" if cut.spilled_bytes else ""
        attempt.note_cut(f"cut into {len(parts)} applications, one after another: {refused}{spilled}")
        log.info("expected to take %s", format_duration(cut.makespan_s))
        self._add_parts(parts)

    def _add_parts(self, parts: Sequence[Unit]) -> None:
        # In place of what was too large, before the others: steps behind it may read what it writes.
        self._left.extendleft(reversed(parts))
        offer_steps(self._attempt, parts[1:])

    def _start_over(self) -> None:
        give_back_taken(self._attempt)
        self._attempt.follower.forget_failed()
        if has_own_ended(self._attempt):
            self._left.clear()
        else:
            self._start()  # with all steps: the driver program reuses what those that ended well have committed


def list_ready(attempt: Attempt) -> list[str]:
    """The steps of the try but for those that others have run, or run now, and what is behind these."""
    moves, done = attempt.moves, attempt.follower.adopted
    behind = list_behind(attempt.flow.graph.sort_steps(), moves.awaited, attempt.flow.graph.upstream) if moves else ()
    blocks = attempt.flow.map_repeat_blocks()
    return [name for name in attempt.steps if name not in done and not {*blocks.get(name, (name,))} & {*behind}]


def list_submits(attempt: Attempt, steps: Sequence[str]) -> tuple[Unit, ...]:
    """``steps`` by submits, in order: all in one, or as the level and the author ask for."""
    units = attempt.flow.list_units(steps)
    if not units or attempt.level.per_step or attempt.is_per_step:
        return units
    if not attempt.level.halved:
        return (tuple(chain.from_iterable(units)),)
    # What has been committed is found there, whichever part is tried again.
    ended = attempt.follower.feed.steps.values()
    stored = {done.step for done in ended if done.state in GREEN and (done.datasets or done.wrote)}
    return cut_after_memory(units, discount_done(_gather_facts(attempt), stored), attempt.level.memory_factor)


def _gather_facts(attempt: Attempt) -> Facts:
    """With what the last submit knew of its inputs: what was pruned for it takes no room in a part either."""
    return gather_facts_of_run(attempt.planned, attempt.hook, attempt.level, attempt.pruning)
