"""Ends of the gates: each is done when its launch task, or one of several, has begun."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowRescheduleException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.timezone import utcnow
from airflow.triggers.base import TaskSuccessEvent, TriggerEvent

from airflow_dagsched.launch.protocol.feed import NOT_BEGUN
from airflow_dagsched.provider.mirrors.launch_states import States, wait_for_states
from airflow_dagsched.provider.mirrors.light import LightTrigger
from airflow_dagsched.provider.mirrors.mirror_args import START_TRIGGER, StartArgs, collect_kwargs

if TYPE_CHECKING:
    from airflow.sdk import Context

POLL_S = 0.5


def has_begun(states: States) -> bool:
    """Whether one of the launch tasks runs, or has run: mirrors may look for their verdict then."""
    return any(state not in NOT_BEGUN for state in states.values())


class StartTrigger(LightTrigger):
    """Ends a gate when its launch task, or one of several, has begun."""

    def __init__(self, launch: str, others: Sequence[str] = ()) -> None:
        super().__init__()
        self.args = StartArgs(launch, tuple(others))

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """As Airflow stores it; a triggerer makes it anew from that."""
        return START_TRIGGER, collect_kwargs(self.args)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, when mirrors may be deferred."""
        ti: Any = self.task_instance
        await wait_for_states(ti.dag_id, ti.run_id, self.args.launches, has_begun, POLL_S)
        yield TaskSuccessEvent()


def conclude_or_reschedule(args: StartArgs, context: Context) -> None:
    """One look from a worker, for ``dag.test()``, which knows no ``start_from_trigger``."""
    ti = context["ti"]
    launches = args.launches
    answer = RuntimeTaskInstance.get_task_states(dag_id=ti.dag_id, task_ids=list(launches), run_ids=[ti.run_id])
    if not has_begun({launch: answer.get(ti.run_id, {}).get(launch) for launch in launches}):
        # Not deferred: ``dag.test()`` runs a trigger on the spot, and would wait for a task that comes after.
        raise AirflowRescheduleException(utcnow() + timedelta(seconds=1))
