"""Tells Airflow what is new, so that nothing of a run waits for its API server, or ends with it.

::

    driver's lines ──> Follower ──note, feed──> Teller ──thread──> supervisor ──> API server
                                                  └ notes in their order, then the newest feed

A request takes as long as Airflow's own retries, minutes where the server is away. What could not be told is told
again; what Airflow refuses is said once in the log, and the run goes on without it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CommsDecoder

from airflow_dagsched.launch.protocol.feed import Feed

log = logging.getLogger(__name__)

TELL_EVERY_S = 0.4
AGAIN_S = 1.0
"""Between two tries; each has Airflow's own retries inside."""
LAST_WORD_S = 300.0
"""How long the last feed is tried."""
TRIES = 3
"""Of a note that the server fails on each time: then it is the note."""
PASSING = frozenset({401, 403, 408, 425, 429})
"""Refusals that say nothing about what was sent."""


@dataclass(eq=False)
class Note:
    """Something to tell once."""

    what: str
    send: Callable[[], None]
    tries: int = 0


class Teller:
    """Notes and feeds on their way to Airflow. A feed is told after the notes that came before it.

    :param push: sends a feed.
    :param beside: from a thread of its own; otherwise while ``feed`` is called.
    """

    def __init__(self, push: Callable[[Feed], None], *, beside: bool) -> None:
        self._push = push
        self._beside = beside
        self._guard = threading.Lock()
        self._notes: deque[Note] = deque()
        self._feed: Feed | None = None
        self._news = threading.Event()
        self._closing = threading.Event()
        self._given_up = threading.Event()
        self._away = False
        self._told_at = float("-inf")
        # a daemon: a request that hangs must not keep the worker from ending
        self._thread = threading.Thread(target=self._tell_until_closed, name="dagsched-teller", daemon=True)
        if beside:
            self._thread.start()

    def note(self, what: str, send: Callable[[], None]) -> None:
        """Tell, with ``send``, ``what`` the log calls so if it can't be told."""
        with self._guard:
            self._notes.append(Note(what, send))
        self._news.set()
        if not self._beside:
            self._tell_all()

    def feed(self, feed: Feed) -> None:
        """Tell ``feed``, and none that came before it and is still untold."""
        with self._guard:
            self._feed = feed
        self._news.set()
        # each keeps the driver's output waiting
        if not self._beside and (feed.final or time.monotonic() - self._told_at >= TELL_EVERY_S):
            self._tell_all()

    def close(self, within_s: float = LAST_WORD_S) -> bool:
        """Tell all there is, for so long; whether the last feed was told."""
        self._closing.set()
        self._news.set()
        if self._beside:
            self._thread.join(within_s)
            # The thread may be inside a request still; it begins no other.
            self._given_up.set()
        else:
            self._tell_all()
        with self._guard:
            return self._feed is None

    def _tell_until_closed(self) -> None:
        while not (self._closing.is_set() and not self._news.is_set()):
            self._news.wait()
            self._news.clear()
            if self._tell_all():
                # Not a plain sleep: the last feed is told at once.
                self._closing.wait(TELL_EVERY_S)
            elif self._given_up.wait(AGAIN_S):
                return
            else:
                self._news.set()

    def _tell_all(self) -> bool:
        """Tell all there is; False where the rest must be tried again."""
        self._told_at = time.monotonic()
        with self._guard:
            # Both at once: the notes that were there before the feed are told before it.
            notes, feed = tuple(self._notes), self._feed
        for note in notes:
            if not self._is_over(note):
                return False
            with self._guard:
                self._notes.popleft()
        if feed is None:
            return True
        return self._has_told(feed)

    def _is_over(self, note: Note) -> bool:
        """Whether the note was told, or never will be."""
        note.tries += 1
        try:
            note.send()
        except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on
            if not is_refusal(error) and not (read_status(error) and note.tries >= TRIES):
                self._say_away(error)
                return False
            log.warning("Airflow refuses %s, which is left out: %s", note.what, describe_error(error))
        self._say_back()
        return True

    def _has_told(self, feed: Feed) -> bool:
        try:
            self._push(feed)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on
            self._say_away(error)
            return is_refusal(error)  # then the next one may do
        self._say_back()
        with self._guard:
            # A newer one may have come while this was on its way.
            if self._feed is feed:
                self._feed = None
        return True

    def _say_away(self, error: Exception) -> None:
        """Once an outage."""
        if not self._away:
            log.warning(
                "Airflow can't be told of the steps now, which go on; it is tried again: %s", describe_error(error)
            )
        self._away = True

    def _say_back(self) -> None:
        if self._away:
            log.info("Airflow is told of the steps again")
        self._away = False


def is_refusal(error: Exception) -> bool:
    """Whether ``error`` will be the same next time: the server's no, or a value that can't even be sent."""
    if not isinstance(error, AirflowRuntimeError):
        return not isinstance(error, (OSError, EOFError))
    status = read_status(error)
    return 400 <= status < 500 and status not in PASSING


def read_status(error: Exception) -> int:
    """HTTP status of what the API server answered; 0 where it did not answer."""
    detail = error.error.detail if isinstance(error, AirflowRuntimeError) else None
    return int((detail or {}).get("status_code") or 0)


def describe_error(error: Exception) -> str:
    """One short line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def can_tell_beside() -> bool:
    """Whether a second thread may talk to Airflow: a worker's connection to its supervisor has a lock, that of
    ``dag.test()`` takes itself away from everybody else while it answers.
    """
    return isinstance(getattr(task_runner, "SUPERVISOR_COMMS", None), CommsDecoder)
