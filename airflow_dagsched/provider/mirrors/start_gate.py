"""The gate that holds a group's mirrors back until its launch task runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_dagsched.provider.mirrors.held import HOLDS_NOTHING
from airflow_dagsched.provider.mirrors.mirror_args import StartArgs, make_start_args

if TYPE_CHECKING:
    from airflow.sdk import Context


class StartGate(BaseOperator):
    """Turns green when its launch task, or any of several, has begun, on the triggerer, without a worker.

    A mirror holds one of the triggerer's slots from its deferral to its end. Deferred earlier, the mirrors of runs that
    wait (for a sensor, a pool, a worker) could take all slots there are, also the one that the sensor they wait for
    needs: then nothing goes on, for ever. A launch task that runs waits for no trigger.
    """

    ui_color = "#e8f0fb"
    start_from_trigger = True

    def __init__(self, *, task_id: str, launch: str, others: tuple[str, ...] = (), **kwargs: Any) -> None:
        # Ours last: default_args of a DAG mean tasks that work.
        super().__init__(task_id=task_id, **{**kwargs, **HOLDS_NOTHING})
        self.args = StartArgs(launch, others)
        self.start_trigger_args = make_start_args(self.args)

    def execute(self, context: Context) -> None:
        """Without a triggerer (``dag.test()``): look once, then come back later."""
        from airflow_dagsched.provider.mirrors.start import conclude_or_reschedule

        conclude_or_reschedule(self.args, context)
