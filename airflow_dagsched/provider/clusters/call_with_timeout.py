"""A limit on the whole of what is asked: an HTTP client's is on each read, a folder's listing has none.

read   |──|──|──|──|──|──|──    each in time
whole  |─────────────| late     left to itself, in a thread of its own
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from airflow_dagsched.errors import ClusterUnknown

T = TypeVar("T")


def call_with_timeout(work: Callable[[], T], within_s: float, asked: str) -> T:
    """What ``work`` returns or raises. Raises :class:`ClusterUnknown` where it does neither in time.

    Nothing can stop it then: its thread is left to itself, and keeps no process from ending.
    """
    ended: Future[T] = Future()

    def run() -> None:
        try:
            ended.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised where it is waited for
            ended.set_exception(error)

    # A daemon: nothing stops what hangs in the network, and Python waits for every other thread before it ends.
    threading.Thread(target=run, name=f"ask {asked}", daemon=True).start()
    if not wait([ended], within_s).done:
        raise ClusterUnknown(asked, f"no whole answer came within {within_s:g} s")
    return ended.result()
