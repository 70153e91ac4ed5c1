"""The launch task of a stream: starts a driver that outlives it, and follows that from the triggerer.

Only what a parse of the DAG file needs is here; :mod:`~airflow_dagsched.provider.streaming.launch_stream` is loaded by
a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_dagsched.provider.wiring.launch import LaunchOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec
    from airflow_dagsched.provider.submission.spark_submit import Described

STREAM_DRIVER = str(Path(__file__).parents[2] / "spark" / "stream_driver" / "main.py")


class StreamLaunchOperator(LaunchOperator):
    """Sees that one epoch of a stream runs, until it is replaced.

    :param execution_timeout: whoever said it: the dataflow, or ``default_args`` of it, of a task group or of the DAG.

    Raises :class:`InvalidInput` for one.
    """

    def __init__(self, *, spec: LaunchSpec, execution_timeout: timedelta | None = None, **kwargs: Any) -> None:
        if execution_timeout is not None:
            rule = "would end the stream, which has no end: leave it out, of default_args of groups and the DAG, too"
            raise spec.flow.make_error(rule, "execution_timeout")
        # Said explicitly: else Airflow's own default (default_task_execution_timeout), which means tasks that end.
        super().__init__(spec=spec, execution_timeout=None, **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Find or start the epoch of this code, and be deferred until it ends."""
        # Late, and only here: a parse of the DAG file loads nothing of what a run needs.
        from airflow_dagsched.provider.streaming.launch_stream import execute_stream
        from airflow_dagsched.provider.streaming.launching import Launching

        return execute_stream(Launching.open(self, context))  # type: ignore[no-any-return]

    def resume(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """Go on where the trigger says that there is something to do."""
        from airflow_dagsched.provider.streaming.launch_stream import resume_stream
        from airflow_dagsched.provider.streaming.launching import Launching

        return resume_stream(Launching.open(self, context), event)  # type: ignore[no-any-return]

    def describe_driver(
        self, *, conf: dict[str, str], arguments: list[str], env: dict[str, str], file: Path, on_settings: Any
    ) -> Described:
        """How the driver program is started; ``file`` is where its settings will be."""
        self.conf, self.application_args = conf, arguments
        hook = self._get_hook()
        hook.environment, hook.on_settings = env, on_settings
        return hook.describe_submit(STREAM_DRIVER, file)

    def on_kill(self) -> None:
        """Note it: the task looks every second, and asks whether a person ended it; the driver is no child of it."""
        self.stopped = True
