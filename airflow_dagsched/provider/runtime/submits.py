"""Which steps each submit of a try runs: nearly always all of the group in one. Nobody else knows of escalation (more
memory, smaller parts), of cutting for a small cluster, and of retries after an application has lost its workers.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

from airflow.sdk.exceptions import AirflowException

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.escalation.split_group import Unit, cut_to_fit, split_in_halves
from airflow_dagsched.launch.escalation.stranded import Stranded
from airflow_dagsched.provider.runtime.allocation import gather_group_fit
from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.spec.configuration import is_planning

log = logging.getLogger(__name__)


class Submits:
    """The submits of one try, in order. What one of them turns out to need is done in its place, before the others."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._start()

    def _start(self) -> None:
        self._level = self._attempt.memory.level
        self._left = deque(list_submits(self._attempt))

    def __iter__(self) -> Iterator[Unit]:
        while self._left:
            yield self._left.popleft()

    @contextmanager
    def escalating(self, targets: Unit) -> Iterator[None]:
        """The submit of ``targets`` inside: what it fails with may lead to others, and is no failure then."""
        attempt = self._attempt
        try:
            yield
        except DoesNotFit as refused:
            parts = cut_to_fit(
                list_units(attempt, targets), gather_group_fit(attempt.spec, attempt.hook, attempt.level)
            )
            if len(parts) == 1:
                raise
            attempt.note_cut(f"cut into {len(parts)} applications, one after another: {refused}")
            # In place of what was too large, before the others: steps behind it may read what it writes.
            self._left.extendleft(reversed(parts))
        except Stranded as found:
            attempt.note_cut(str(found))
            attempt.stranded += 1
            attempt.follower.forget_failed()
            self._left.appendleft(targets)
        except AirflowException as error:
            # The level rises where memory ran out, and only there: anything else is the end of the try.
            if attempt.memory.level == self._level or attempt.launch.stopped:
                raise
            log.warning("%s", error)
            attempt.note_cut(f"out of memory: tried again with {attempt.level}")
            attempt.follower.forget_failed()
            self._start()  # with all steps: the driver program reuses what those that ended well have committed


def list_submits(attempt: Attempt) -> tuple[Unit, ...]:
    """The steps of each submit, in order: all of the group in one, or as the level and the author ask for."""
    units = list_units(attempt, attempt.steps)
    if attempt.level.per_step or _is_per_step(attempt):
        return units
    return split_in_halves(units) if attempt.level.halved else (tuple(chain.from_iterable(units)),)


def list_units(attempt: Attempt, steps: Iterable[str]) -> tuple[Unit, ...]:
    """``steps`` in topological order, a repeat block whole."""
    inside, blocks = set(steps), attempt.flow.map_repeat_blocks()
    ordered = (name for name in attempt.flow.graph.sort_steps() if name in inside)
    return tuple(dict.fromkeys(blocks.get(name, (name,)) for name in ordered))


def _is_per_step(attempt: Attempt) -> bool:
    asked = (attempt.facts.conf.get("dagsched") or {}).get("run", attempt.flow.run)
    return asked == "per_step" or not is_planning()
