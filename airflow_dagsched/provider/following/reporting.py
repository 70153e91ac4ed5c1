"""What a launch task leaves in Airflow while it runs: the feed, its mirrors' XComs, the link to Spark's pages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from airflow.sdk.execution_time.xcom import XCom

from airflow_dagsched.launch.protocol.events import Started, StepDone
from airflow_dagsched.launch.protocol.feed import FEED_KEY, Feed, list_xcoms, name_returned_key
from airflow_dagsched.launch.protocol.push_limit import encode_feed
from airflow_dagsched.provider.following.follower import Follower
from airflow_dagsched.provider.following.links import SparkUiLink
from airflow_dagsched.provider.following.standing import Standing
from airflow_dagsched.provider.following.telling import Teller, can_tell_beside


def open_follower(
    ti: Any, mirrors: Mapping[str, str], feed: Feed, standing: Standing, show_page: Callable[[str], None]
) -> Follower:
    """The follower of one try, with its ``feed``, still empty, on its way to the mirrors. A try that has lost its
    ``standing`` tells nothing more.

    :param mirrors: step -> task id of its mirror.
    :param show_page: is told the address of each application's page.
    """
    beside = can_tell_beside()

    def if_it_counts(send: Callable[..., None], *args: Any, **where: str) -> None:
        # Asked as it is sent, not as it is noted: a note may have waited out an outage, and its try with it.
        if standing.holds():
            send(*args, **where)

    def push(feed: Feed) -> None:
        if standing.holds():
            ti.xcom_push(FEED_KEY, encode_feed(feed, time.monotonic()))
            standing.said = True  # from now on, what is there in its place is somebody else's

    teller = Teller(push, beside=beside)

    def publish(done: StepDone) -> None:
        mirror, values = _collect_xcoms(mirrors, done)
        where = {"dag_id": ti.dag_id, "task_id": mirror, "run_id": ti.run_id}
        for key, value in values.items():
            teller.note(f"XCom {key!r} of {mirror!r}", partial(if_it_counts, XCom.set, key, value, **where))
        # ``dag.test()``: there a mirror is executed, and returns what it finds here; Airflow pushes that.
        if values and not beside:
            key = name_returned_key(done.step)
            teller.note(f"XCom {key!r}", partial(if_it_counts, ti.xcom_push, key, values["return_value"]))

    def started(event: Started) -> None:
        if event.ui:
            show_page(event.ui)
            push_link = partial(if_it_counts, ti.xcom_push, SparkUiLink().xcom_key, event.ui)
            teller.note("the link to Spark's pages", push_link)

    follower = Follower(feed, teller.feed, publish, started, teller.close)
    follower.push()
    return follower


def _collect_xcoms(mirrors: Mapping[str, str], done: StepDone) -> tuple[str, dict[str, Any]]:
    """The mirror, and its XComs by key; none where an event that was garbled names a step that there isn't."""
    return (mirrors[done.step], list_xcoms(done)) if done.step in mirrors else ("", {})
