"""A look at a stream's DAG file by a process of its own: what it finds must be what was found here.

A clock or a random number that is read with the file, and an order that hangs on hashes, are equal in two looks within
a process, and differ between two. ``python -m airflow_dagsched.provider.submission.fresh_look DAG_FILE DAG FLOW``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.streams.fingerprint import FlowCode
from airflow_dagsched.provider.submission.stream_code import find_unsteady, read_flow_code

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec

MARK = "dagsched-flow-code:"
"""Before the answer: what a DAG file prints is on the same output."""
DATABASE = ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__SQL_ALCHEMY_CONN")
LIMIT_S = 300
"""For a parse; Airflow's own limit is 30 s."""


def check_in_fresh_process(flow: DataflowSpec, dag_file: str) -> None:
    """Parse ``dag_file`` once more, in a process where other hashes count, and compare ``flow`` with what is there.

    Where the file changes meanwhile nothing is told: the next parse will.
    Raises :class:`InvalidInput` naming what differs, :class:`LaunchRefused` where the file cannot be read again.
    """
    assert flow.stream is not None
    before = Path(dag_file).read_bytes()
    here = read_flow_code(flow.stream, flow, dag_file)
    there = _look_again(flow, dag_file)
    if Path(dag_file).read_bytes() != before:
        return
    for error in find_unsteady(flow, here, there, "in a fresh process"):
        raise error


def _look_again(flow: DataflowSpec, dag_file: str) -> FlowCode:
    command = [sys.executable, "-P", "-m", __spec__.name, dag_file, flow.dag_id, flow.name]
    # Not below 1: 0 turns the randomness of hashes off, and the parent may have any.
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = {
        **os.environ,
        "PYTHONHASHSEED": seed,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        # A task's process has an address there that no library takes: it is to ask the API. A parse needs no database.
        **dict.fromkeys(DATABASE, "sqlite://"),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    answers = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not answers:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        reason = f"its DAG file cannot be read in a fresh process: {last}"
        raise LaunchRefused(flow.name, reason, "a stream is read again with each epoch: look at what the file needs")
    found = json.loads(answers[-1])
    return FlowCode(found["steps"], found["settings"])


def main(dag_file: str, dag_id: str, name: str) -> None:
    """Print what the dataflow ``name`` of a DAG is."""
    # Here: a launch that asks has read its DAG file already.
    from airflow.dag_processing.dagbag import DagBag

    from airflow_dagsched.provider.clusters.planner_hook import list_dataflows

    bag = DagBag(Path(dag_file))
    if dag_id not in bag.dags:
        sys.exit(" ".join("; ".join(bag.import_errors.values()).split()) or f"there is no DAG {dag_id!r}")
    launches = (launch for each in list_dataflows(bag.dags[dag_id]) for launch in each.launches())
    flow: DataflowSpec = next(launch.flow for launch in launches if launch.flow.name == name)
    assert flow.stream is not None
    code = read_flow_code(flow.stream, flow, dag_file)
    print(MARK + json.dumps({"steps": code.steps, "settings": code.settings}))


if __name__ == "__main__":
    main(*sys.argv[1:])
