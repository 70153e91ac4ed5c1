"""What stays in the application of each session that streaming queries have run in: its bus of their events.

Spark puts one on the bus of the application for every session that starts a query, and for the copy of the session
that the query itself runs in. It never takes one off: in an application that runs for weeks they grow more and more,
and each event passes all of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from airflow_dagsched.spark.session.private_fields import read_private

log = logging.getLogger(__name__)

LAST_EVENT_S = 5.0
"""Within which Spark tells that a query has ended, mostly at once: it does so in a thread of its own."""
POLL_S = 0.02


def stop_listening(session: SparkSession, queries: Iterable[StreamingQuery]) -> None:
    """Take the buses of ``session`` off the application's. Nothing happens while a query of it runs.

    :param queries: all that were started in the session. They have ended.
    """
    try:
        for each in (session._jsparkSession, *map(_find_copy, queries)):
            if not each.streams().active():
                _take_off(session, read_private(each.streams(), "listenerBus"))
    except LookupError as error:
        log.warning("Spark goes on listening for queries that have ended: %s", error)


def _find_copy(query: StreamingQuery) -> Any:
    """The copy of its session that the query has run in."""
    return read_private(read_private(query._jsq, "streamingQuery"), "sparkSessionForStream")


def _take_off(session: SparkSession, bus: Any) -> None:
    # Whoever listens is told of the end first: Spark's pages would show the query as one that runs, for ever.
    running, deadline = read_private(bus, "activeQueryRunIds"), time.monotonic() + LAST_EVENT_S
    while not running.isEmpty():
        if time.monotonic() > deadline:
            log.warning("Spark goes on listening for a query that has ended: it has not told so")
            return
        time.sleep(POLL_S)
    session.sparkContext._jsc.sc().removeSparkListener(bus)
