"""Whether a try of a launch task still is the one that counts: asked of Airflow before anything is told or kept.

Airflow lets a worker set XComs long after its task was cleared, failed for a missing heartbeat and tried again: only
what ends a task (state, asset events) is refused then. A worker that was frozen and wakes has some moments until its
supervisor's next heartbeat is refused and ends it.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.feed import FEED_KEY
from airflow_dagsched.launch.protocol.identity import NO_TRY, TryId
from airflow_dagsched.launch.protocol.push_limit import read_feed

log = logging.getLogger(__name__)

ASK_EVERY_S = 2.0
"""What was asked so long ago is asked again."""


@dataclass
class Superseded(DagschedError):
    """A try that Airflow has given up, or that another follows already, tells and keeps nothing more."""

    launch: str

    def __str__(self) -> str:
        return (
            f"{self.launch!r} was cleared, failed or started again while this try was at work (or its worker stood "
            "still): this try ends, and nothing more of it counts"
        )


@dataclass(eq=False)
class Standing:
    """Of one try.

    :param state: of the launch task, as Airflow has it now; raises what a request may raise.
    :param feed: what is under the launch task's feed key now.
    """

    launch: str
    nonce: str
    state: Callable[[], str | None]
    feed: Callable[[], Any]
    clock: Callable[[], float] = time.time
    try_id: TryId = NO_TRY
    lost: bool = False
    """For good: a later try does not give it back."""
    said: bool = False
    """Whether this try's feed was pushed: then one of a later try in its place, or none, says that there is one."""
    _asked_at: float = field(default=float("-inf"))

    def holds(self, *, now: bool = False) -> bool:
        """Whether the try counts; asked anew if it was long ago, or ``now``."""
        # abs: the wall clock may be set back, and nothing would be asked until it has caught up.
        if not self.lost and (now or abs(self.clock() - self._asked_at) >= ASK_EVERY_S):
            self.lost = not self._is_ours()
            self._asked_at = self.clock()
        return not self.lost

    def demand(self) -> None:
        """Raise ``Superseded`` if the try does not count any more. Where Airflow can't be asked it goes on."""
        try:
            self.holds(now=True)
        # Whatever has to be refused an API server will refuse, as soon as it is back.
        except Exception as error:  # noqa: BLE001 - see above
            log.warning("whether this try of %s still counts is not known: %s", self.launch, error)
        if self.lost:
            raise Superseded(self.launch)

    def _is_ours(self) -> bool:
        state = self.state()
        if state != "running":
            log.warning("%s is %s: this try tells nothing more", self.launch, state)
            return False
        if self.said and self._is_followed(self.feed()):
            log.warning("%s was started again: this try tells nothing more", self.launch)
            return False
        return True

    def _is_followed(self, there: Any) -> bool:
        """Whether what is there now in place of this try's feed is of a later try, or was removed as one began."""
        # What is no feed says nothing about this try: each try removes what is there as it begins. Nor does what an
        # earlier one says: its worker was frozen, and woke.
        other = read_feed(there)
        if other is None:
            return not there
        return other.nonce != self.nonce and other.try_id >= self.try_id


def make_standing(launch: str, ti: Any, try_id: TryId) -> Standing:
    """Of the try that ``ti`` is, of the task ``launch``."""

    def state() -> str | None:
        states = RuntimeTaskInstance.get_task_states(dag_id=ti.dag_id, task_ids=[launch], run_ids=[ti.run_id])
        known: str | None = states.get(ti.run_id, {}).get(launch)
        return known

    def feed() -> Any:
        return XCom.get_one(key=FEED_KEY, dag_id=ti.dag_id, task_id=launch, run_id=ti.run_id)

    return Standing(launch, secrets.token_hex(8), state, feed, try_id=try_id)


def make_unrivalled() -> Standing:
    """Of a try outside of Airflow."""
    return Standing("", "", state=lambda: "running", feed=lambda: {"nonce": ""})
