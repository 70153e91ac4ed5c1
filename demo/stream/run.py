"""A stream of flights in a real Airflow: its graph is edited while it runs, and the new one takes over at an hour.

::

    reports of flights, half an hour a file ──> epoch 1: late is over 15 min ──┐ fence
                                          └──> epoch 2: late is over 30 min ──┴──> one table, each hour once

On a terminal Airflow stays up afterwards until Ctrl-C. The exit code is 0 if the table is right.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.checking.report import write_text
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import FlowPlaces, name_flow
from airflow_dagsched.switch.records import Batch
from airflow_dagsched.switch.say import tell_record, tell_window
from airflow_dagsched.switch.story import Story
from demo import processes
from demo.flights_data import prepare
from demo.rest import AirflowClient, Run, until
from demo.run import CHECKOUT, KEPT, run_at_home, stay_up
from demo.standalone import AirflowStandalone
from demo.stream.departures import Departure, add_file, list_files
from demo.stream.proof import Rule, prove, tell_proof

DAG_ID = "departures"
FILE = CHECKOUT / "dags" / "streams" / "departures.py"
FIRST, DAYS = date(2013, 1, 15), 20
BEFORE, AFTER = "LATE_MIN = 15", "LATE_MIN = 30"
LATE_MIN = {1: 15, 2: 30}
"""Epoch -> its rule."""
HOURS = 4
"""That each graph writes at least."""
PACE_S = 0.5
"""From file to file, each half an hour of reports."""
AHEAD = 12
"""Files at most that the graph that runs has not read to their end."""
TIMEOUT_S = 600.0
PARSE_S = "2"
SETTINGS = {
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": PARSE_S,
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": PARSE_S,
}
"""An edit is seen at once."""


def main() -> int:
    """Exit code 0 if each hour is in the table once, by the right graph."""
    return run_at_home(demonstrate)


def demonstrate(home: Path) -> int:
    """Run the stream in an Airflow that lives in ``home``; 0 if its table is right."""
    print("Data: the flights out of New York in 2013 ...", flush=True)
    data = prepare(KEPT / "data")
    (home / "dags").mkdir()
    file = home / "dags" / FILE.name
    file.write_text(FILE.read_text())
    flow = name_flow(home / "work", DAG_ID, DAG_ID)
    env = {"DEPARTURES_DATA": str(home / "data"), "DEPARTURES_OUT": str(home / "tables")}
    env |= {"DEPARTURES_WORK": str(home / "work"), **SETTINGS}
    print("Airflow: starting ...", flush=True)
    # Drivers outlive Airflow: they are ended last.
    with processes.ended_at_exit(str(flow.folder)), AirflowStandalone(home, file.parent, env=env) as airflow:
        print(f"Airflow: {airflow.url}  user {airflow.user}, password {airflow.password}\n", flush=True)
        stream = Stream(flow, data / "flights", home)
        is_right = run_stream(stream, airflow, file)
        stay_up(airflow, DAG_ID)
        print("Airflow: stopping ...", flush=True)
    return 0 if is_right else 1


class Stream:
    """The stream from outside: its reports, as they are fed, and its log, as it is printed."""

    def __init__(self, flow: FlowPlaces, flights: Path, home: Path) -> None:
        self.flow = flow
        self.table = home / "tables" / "by_hour"
        self.rows: list[Departure] = []
        """All reports so far."""
        self._files = list_files(flights, FIRST, DAYS)
        self._source = home / "data" / "departures"
        self._fed = 0
        self._reported: list[int] = []
        """Of each file that was fed, its newest report."""
        self._fed_at = 0.0
        self._log = FlowLog(flow.log)
        self._begun = time.monotonic()

    @property
    def story(self) -> Story:
        """All that the log says."""
        return self._log.story

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Feed, and print what happens, until it is so."""

        def look() -> bool | None:
            self.feed()
            self.show()
            self.check_alive()
            return True if is_so() else None

        until(what, look, TIMEOUT_S, every_s=0.1)

    def feed(self) -> None:
        """Add a file, if it is time for one, and the graph that runs is not too far behind."""
        if time.monotonic() - self._fed_at >= PACE_S and self._count_ahead() < AHEAD:
            self._fed_at = time.monotonic()
            rows = next(self._files, None)
            if rows is None:
                raise RuntimeError(f"no more flights: all of {DAYS} days were read before the switch was over")
            add_file(self._source, self._fed, rows)
            self._fed += 1
            self._reported.append(rows[-1].reported)
            self.rows += rows

    def _count_ahead(self) -> int:
        """Files that are newer than the watermark of the owner."""
        queries = self.story.old.queries.values() if self.story.old else ()
        watermark = max((each.last.watermark for each in queries), default=0.0) * 1e6
        return self._fed - bisect_right(self._reported, watermark)

    def show(self) -> None:
        """Print what is new in the log, of batches those that bring rows into the table."""
        for record in self._log.read():
            if not isinstance(record, Batch):
                self.say(tell_record(record))
            elif record.kept:
                hours = f"hours {tell_window(record.first)} to {tell_window(record.last)}"
                self.say(f"  epoch {record.epoch}: {hours}, {record.kept} of {record.rows} rows in the table")

    def check_alive(self) -> None:
        """Raise ``RuntimeError`` where a graph was given up: nothing would come any more."""
        given_up = [each.aborted.reason for each in self.story.epochs.values() if each.aborted is not None]
        if given_up:
            raise RuntimeError(f"a graph was given up: {given_up[-1]}; see {self.flow.folder}")

    def say(self, what: str) -> None:
        """A line, with the seconds since the stream was looked at first."""
        print(f"{time.monotonic() - self._begun:>5.0f} s  {what}", flush=True)

    def find_newest(self, epoch: int) -> float:
        """The last hour of an epoch; 0: it has emitted none."""
        found = self.story.epochs.get(epoch)
        return (found.newest_window if found else None) or 0.0

    def find_first(self) -> float:
        """The first hour of the stream."""
        return min(each.scheduled for each in self.rows) / 1e6


def run_stream(stream: Stream, airflow: AirflowStandalone, file: Path) -> bool:
    """Start it, edit its file, wait for the other graph, stop it; whether the table is right."""
    client = airflow.client
    client.wait_for_dag(DAG_ID)
    client.pause(DAG_ID, paused=False)
    stream.say(f"DAG {DAG_ID} is in: late is more than {LATE_MIN[1]} minutes")
    stream.wait("hours of the first graph", lambda: stream.find_newest(1) > stream.find_first() + HOURS * 3600)
    file.write_text(file.read_text().replace(BEFORE, AFTER))
    stream.say(f"EDIT of {file.name}: {BEFORE} becomes {AFTER}")
    stream.wait("the other graph", lambda: stream.story.owner == 2)
    fence = stream.story.epochs[2].into
    assert fence is not None, "an owner that took over has a fence"
    stream.wait("hours of the other graph", lambda: stream.find_newest(2) > fence.upto + HOURS * 3600)
    is_green = show_runs(stream, client)
    stopped = airflow.cli("dagsched", "stream", "stop", DAG_ID, "--reason", "the demo ends")
    if stopped.returncode:
        raise RuntimeError(f"the stream could not be stopped:\n{stopped.stderr}")
    stream.wait("the end of the stream", lambda: stream.story.epochs[2].stopped is not None)
    return show_proof(stream, fence.upto) and is_green


def show_runs(stream: Stream, client: AirflowClient) -> bool:
    """Print the state of each run; whether the one of the old graph has ended as success."""
    runs = [Run(DAG_ID, each["dag_run_id"]) for each in client.runs(DAG_ID)]
    old = client.wait_for_run(runs[0], TIMEOUT_S)
    for run in runs:
        stream.say(f"run {run.run_id}: {client.run_state(run)}")
    return old == "success"


def show_proof(stream: Stream, fence: float) -> bool:
    """Print the table beside the flights, and what the checker says of the log."""
    upto = int(fence * 1e6)
    rules = (Rule(1, LATE_MIN[1], upto), Rule(2, LATE_MIN[2], None))
    proof = prove(stream.rows, stream.table, rules, int(stream.find_newest(2) * 1e6))
    checked = check_log(stream.flow.log)
    print(f"\nFence: {datetime.fromtimestamp(fence, UTC):%Y-%m-%d %H:%M} UTC\n{tell_proof(proof)}")
    print(f"\ndagsched stream check {stream.flow.log}\n{write_text(checked)}", end="")
    return proof.holds and not checked.violations


if __name__ == "__main__":
    sys.exit(main())
