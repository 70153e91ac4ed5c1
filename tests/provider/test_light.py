"""What a trigger of ours keeps while it waits, as Airflow's triggerer makes it."""

from __future__ import annotations

import gc
import uuid
import weakref
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.executors.workloads.task import TaskInstanceDTO
from airflow.jobs.triggerer_job_runner import TriggerRunner
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from airflow_dagsched import SparkDataflow
from airflow_dagsched.provider.mirrors.mirror import MirrorTrigger
from airflow_dagsched.provider.mirrors.start import StartTrigger
from tests.provider.test_edges import step

BEGAN = datetime(2026, 3, 5, tzinfo=UTC)
RUN = {
    "dag_id": "sales", "run_id": "r", "logical_date": None, "data_interval_start": None, "data_interval_end": None,
    "run_after": BEGAN, "start_date": BEGAN, "end_date": None, "clear_number": 0, "run_type": "manual",
    "state": "running", "conf": {}, "consumed_asset_events": [], "partition_key": None, "partition_date": None,
    "note": None, "triggering_user_name": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("trigger", "task_id"),
    [(MirrorTrigger("f.launch", "a"), "f.a"), (StartTrigger("f.launch"), "f.launch_started")],
)
def test_the_copy_of_the_dag_is_let_go(dag: DAG, trigger: Any, task_id: str) -> None:
    """The steps that ``TriggerRunner`` takes with a workload that has a DAG; then only the run's facts are left."""
    with SparkDataflow("f"):
        step("a")
    instance = TaskInstanceDTO.model_construct(
        id=uuid.uuid4(), task_id=task_id, dag_id="sales", run_id="r", try_number=1, map_index=-1
    )
    made = TriggerRunner.create_runtime_ti(instance, DagSerialization.to_dict(dag), RUN)
    context = made.get_template_context()
    copy = weakref.ref(made.task)
    trigger.task_instance = made
    trigger.render_template_fields(context=context)
    gc.collect()
    assert copy() is None
    assert (made.dag_id, made.run_id) == ("sales", "r")
    assert made.id == instance.id
