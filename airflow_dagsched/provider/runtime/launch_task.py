"""What a try asks of the Airflow task that it runs in. (The wiring, which comes later, makes it.)"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec


class LaunchTask(Protocol):
    """A launch task at work."""

    spec: LaunchSpec
    outlets: Any
    execution_timeout: timedelta | None
    stopped: bool
    """Whether Airflow ended this task: then nothing is submitted any more."""
    spark_ui: str
    """Address of the latest application's page; empty until there is one."""

    @property
    def spark_submit(self) -> str:
        """The program to run."""

    @property
    def dag(self) -> Any:
        """Its DAG, as Airflow read it for this run."""

    def submit(
        self,
        context: Context,
        *,
        conf: dict[str, str],
        arguments: list[str],
        env: dict[str, str],
        on_settings: Callable[[Mapping[str, str], frozenset[str]], None],
        on_line: Callable[[str], str | None],
    ) -> None:
        """One spark-submit of the driver program; returns when it has ended well, raises ``AirflowException`` else."""

    def end_submit(self) -> None:
        """Stop the application, but not this task."""

    def on_kill(self) -> None:
        """Stop the application, and submit no other."""

    def get_template_env(self) -> Any:
        """Of the DAG."""

    def render_template(self, content: Any, context: Context, jinja_env: Any) -> Any:
        """``content`` with its templates, and the return values of tasks in it, as they are in this run."""
