"""The main job: one day of flights through Airflow's scheduler and embedded Spark, to look at.

On a terminal Airflow stays up afterwards until Ctrl-C; without one the exit code is that of the run.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from demo.endings import leave_on_signals
from demo.flights_data import prepare
from demo.homes import fresh_home
from demo.progress import MIRRORS, Display, observe
from demo.rest import ENDED, AirflowClient, Run, until
from demo.results import render, summary, tables
from demo.standalone import AirflowStandalone

CHECKOUT = Path(__file__).resolve().parent.parent
KEPT = CHECKOUT / ".home"
"""Everything the demo writes is under it; git ignores it."""
DAG_ID = "flights"
DAY = datetime(2013, 1, 15, tzinfo=UTC)
RUN_TIMEOUT_S = 900.0


def main() -> int:
    """Exit code 0 if every step of the day succeeded, 1 if not or if something is missing."""
    return run_at_home(demonstrate)


def run_at_home(demonstrate: Callable[[Path], int]) -> int:
    """Run a demo in an empty home of its own; its exit code, 1 with a line where something is missing."""
    leave_on_signals()
    try:
        with fresh_home(KEPT) as home:
            return demonstrate(home)
    except KeyboardInterrupt:
        print("\nstopped")
        return 130
    except (RuntimeError, TimeoutError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


def demonstrate(home: Path) -> int:
    """Run the day in an Airflow that lives in ``home``; 0 if it succeeded."""
    print("Data: the flights out of New York in 2013 ...", flush=True)
    data, out = prepare(KEPT / "data"), home / "tables"
    print("Airflow: starting ...", flush=True)
    env = {"FLIGHTS_DATA": str(data), "FLIGHTS_OUT": str(out), "FLIGHTS_WORK": str(home / "work")}
    with AirflowStandalone(home, CHECKOUT / "dags", env=env) as airflow:
        print(f"Airflow: {airflow.url}  user {airflow.user}, password {airflow.password}\n", flush=True)
        succeeded = run_day(airflow.client, out)
        stay_up(airflow, DAG_ID)
        print("Airflow: stopping ...", flush=True)
    return 0 if succeeded else 1


def stay_up(airflow: AirflowStandalone, dag_id: str) -> None:
    """Say where to look, and on a terminal let people look until Ctrl-C."""
    print(f"\nLook at {airflow.url}/dags/{dag_id}  user {airflow.user}, password {airflow.password}")
    if sys.stdout.isatty():
        print("Ctrl-C stops Airflow.", flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()


def run_day(client: AirflowClient, out: Path) -> bool:
    """Run one day and print what it came to; whether it succeeded."""
    client.wait_for_dag(DAG_ID)
    client.pause(DAG_ID, paused=False)
    run = client.trigger(DAG_ID, DAY, DAY + timedelta(days=1))
    state = follow(client, run)
    if state != "success":
        print(f"\nThe run ended as {state}.\n{why(client, run)}", file=sys.stderr)
        return False
    for name, table in tables(out, f"{DAY:%Y-%m-%d}").items():
        print(f"\n{render(name, table)}")
    print(f"\n{summary(client, run)}")
    return True


def follow(client: AirflowClient, run: Run) -> str:
    """Show the steps until the run ends; the state it ends in."""
    display = Display()

    def ended() -> str | None:
        state = client.run_state(run)
        display.show(observe(client, run))
        return state if state in ENDED else None

    return until(f"run {run.run_id}", ended, RUN_TIMEOUT_S)


def why(client: AirflowClient, run: Run) -> str:
    """The end of the log of each task that failed, launch tasks and ordinary ones."""
    failed = [
        each for each in client.task_instances(run) if each["state"] == "failed" and each["operator"] not in MIRRORS
    ]
    logs = {each["task_id"]: client.log(run, each["task_id"], each["try_number"]) for each in failed}
    return "\n".join(f"--- {task_id}\n" + "\n".join(text.splitlines()[-40:]) for task_id, text in logs.items())


if __name__ == "__main__":
    sys.exit(main())
