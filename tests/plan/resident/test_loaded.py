"""What serves streaming alone is loaded where a step streams, and nowhere else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Dataflow
from tests.plan.drawn import drawn, standalone
from tests.plan.test_choose import streaming

PROGRAM = """
import sys
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import decode_json
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.planner import plan
flow, cluster = sys.argv[1:]
plan(decode_json(Dataflow, flow.encode(), "flow"), decode_json(Cluster, cluster.encode(), "cluster"))
print(sum(name.startswith("airflow_dagsched.plan.resident") for name in sys.modules))
"""


def count_loaded(flow: Dataflow) -> int:
    """Modules of the room once ``flow`` has been planned."""
    argv = [sys.executable, "-c", PROGRAM, encode_value(flow).decode(), encode_value(standalone(2, 2)).decode()]
    return int(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("tasks", ["", "t"])
def test_a_batch_plan_loads_no_room_for_streaming(tasks: str) -> None:
    flow = drawn("a == b; a == c; b == d" + ("; d -- t; t -- e" if tasks else ""), tasks=tasks)
    assert count_loaded(flow) == 0


def test_a_streaming_plan_does() -> None:
    assert count_loaded(streaming(drawn("a == b; a == c; b == d"))) > 0
