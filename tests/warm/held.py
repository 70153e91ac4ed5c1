"""Relay and host of a warm application that stand still at a named point: ``python held.py relay REQUEST``, and for
spark-submit ``held.py host FOLDER``.

::

    test                          one process of the application
    ask for a point  ── hold ──>  comes there, writes its number to ``reached``, and waits
    kills whom it likes
    let all go on    ── hold is gone ──>  goes on, if it lives
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:] = [str(Path(__file__).parents[2]), *(path for path in sys.path if Path(path) != Path(__file__).parent)]

VARIABLE = "DAGSCHED_TEST_HOLD"
"""Names the file that names the point; of one task as all of this prefix, so that it makes no other application."""
REACHED = "reached"


def stand_still(point: str, hold: Path) -> None:
    """Until the file ``hold`` is gone, if it names this point."""
    with suppress(FileNotFoundError):
        if hold.read_text("utf-8") != point:
            return
        hold.with_name(REACHED).write_text(str(os.getpid()), "utf-8")
        while hold.exists():
            time.sleep(0.02)


def hold_in(place: Any, name: str, before: str = "", after: str = "") -> None:
    """Have what ``place`` calls ``name`` stand still at these points."""
    called: Callable[..., Any] = getattr(place, name)
    hold = Path(os.environ[VARIABLE])

    @wraps(called)
    def held(*arguments: Any, **named: Any) -> Any:
        stand_still(before, hold)
        found = called(*arguments, **named)
        stand_still(after, hold)
        return found

    setattr(place, name, held)


def hold_host() -> None:
    """At all points of a host, its keeper and its runs."""
    from airflow_dagsched.spark.driver import program
    from airflow_dagsched.spark.outputs import table_commit
    from airflow_dagsched.spark.outputs.commits import CommitLog
    from airflow_dagsched.spark.warm_driver import host, keeper

    hold_in(host, "listen_in", before="before the socket is there")
    hold_in(keeper, "start_spark", before="before Spark is there", after="Spark is there")
    hold_in(host.Host, "_fork_run", before="before the run's process is there")
    hold_in(program, "run_group", before="before the steps", after="behind the steps")
    hold_in(table_commit.TableCommits, "commit_table", before="before the commit", after="behind the commit")
    hold_in(table_commit, "write_journal", after="the journal is written")
    hold_in(CommitLog, "commit_record", after="the record is written, nothing is moved")
    hold_in(table_commit, "move_all", after="all is moved")
    hold_in(host.Host, "_report_end", before="before its end is told")
    hold_in(keeper.Cleaner, "clean", before="before it is cleaned", after="it is cleaned")
    hold_in(host.Host, "_end", before="before it ends")
    hold_in(host, "note_end", before="its folder is gone")


def hold_relay() -> None:
    """At all points of a relay."""
    from airflow_dagsched.provider.warm import relay

    hold_in(relay, "send_text", before="before the manifest is handed over", after="the manifest is handed over")
    hold_in(relay, "_hear_end", after="its end is heard")


def main(what: str, path: Path) -> int:
    """Run the program that it stands for; its exit code."""
    if what == "relay":
        from airflow_dagsched.provider.warm.relay import Relay
        from airflow_dagsched.provider.warm.request import read_request

        hold_relay()
        return Relay(read_request(path)).run()
    from airflow_dagsched.spark.warm_driver.host import run_host

    hold_host()
    return run_host(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
