"""A limit on the whole of a question: that of an HTTP client is on each read, and a server may drip for ever.

    read   |──|──|──|──|──|──|──    each in time
    whole  |─────────────| late     left to itself, in a thread that ends when the client is closed
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float | None, work: Callable[[], T]) -> T:
    """What ``work`` returns, or raises; ``TimeoutError`` once it has taken ``seconds`` (None: no limit).

    What is late is not stopped: it goes on until it ends by itself, and keeps no process from ending.
    """
    done: Future[T] = Future()
    Thread(target=_fulfil, args=(done, work), name="dagsched-asks", daemon=True).start()
    return done.result(seconds)


def _fulfil(done: Future[T], work: Callable[[], T]) -> None:
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
        done.set_exception(error)
