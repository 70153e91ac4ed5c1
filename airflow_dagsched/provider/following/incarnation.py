"""Which of the runs that ever had this id a run is: when it began for the first time, kept in the run itself.

A backfill's or a scheduled run's id follows from its date: a run that is deleted and made again has the id of the
first. ``dag_run.start_date`` tells them apart, but a clear of a finished run moves it. So the first launch of a run
keeps the moment it finds, as an XCom: it lives as long as the run, and goes with it. It belongs to a mirror, for what
belongs to a launch task is wiped by the worker that starts it, and mirrors have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

INCARNATION_KEY = "dagsched_incarnation"
"""XCom key, on the mirror of the dataflow's first step."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


def determine_incarnation(start_date: datetime | None, recall: Callable[[], Any], keep: Callable[[str], None]) -> str:
    """See ``TryId.incarnation``. Launches that begin side by side find the same moment: no clear is between them, for
    only a run that has ended gets another. What cannot be read is kept anew: the run is a later one then.
    """
    known = recall()
    if isinstance(known, str) and _MOMENT.fullmatch(known):
        return known
    # The first launch of the run: no clear has moved its start date yet.
    began = format_moment(start_date)
    keep(began)
    return began


def format_moment(at: datetime | None) -> str:
    """As text of a fixed width, in UTC, so that texts compare as moments do; empty for none."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z" if at is not None else ""
