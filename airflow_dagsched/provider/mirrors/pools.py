"""Refuses runs whose mirrors would take the slots that their own launch tasks wait for.

Mirrors are deferred in ``default_pool`` from the start of a run. If that pool counts deferred tasks they can
fill it, and the launch tasks that would end them never start. Neither a worker nor a trigger can ask Airflow
about pools, so a listener in the scheduler does, before anything of the run is scheduled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from airflow_dagsched.provider.mirrors.held import MIRROR_POOL

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session

OURS = "airflow_dagsched.provider."
REFUSAL = (
    f"pool {MIRROR_POOL!r} counts deferred tasks: the mirrors of this run would take the slots that their launch "
    f"tasks wait for. Edit the pool (Admin, Pools: switch off 'include deferred'), then clear this task"
)


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:
    """Fail the tasks of our dataflows, with a note that says what to do, where they would wait for ever."""
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    ours = {task.task_id for task in dag_run.get_dag().tasks if _read_module(task).startswith(OURS)}
    # In this order: most DAGs have none of ours, and are not to cost a query.
    if session is None or not ours or not _does_count_deferred(session):
        return
    for instance in dag_run.get_task_instances(session=session):
        if instance.task_id in ours and instance.state not in ("success", "skipped"):
            instance.set_state("failed", session=session)
            instance.note = REFUSAL


def _read_module(task: Any) -> str:
    """Of the class of a task read from the database."""
    return str(getattr(task, "_task_module", ""))  # deserialized: its class is not loaded here


def _does_count_deferred(session: Session) -> bool:
    from airflow.models.pool import Pool
    from sqlalchemy import select

    return bool(session.scalar(select(Pool.include_deferred).where(Pool.pool == MIRROR_POOL)))
