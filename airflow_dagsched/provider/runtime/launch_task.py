"""What a try asks of the Airflow task that it runs in, of batches or of a stream. (The wiring, which comes later, makes
it.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec
    from airflow_dagsched.provider.submission.spark_submit import Described
    from airflow_dagsched.provider.warm.offer import Offer


class TaskAtWork(Protocol):
    """A launch task at work."""

    spec: LaunchSpec
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

    def get_template_env(self) -> Any:
        """Of the DAG."""

    def render_template(self, content: Any, context: Context, jinja_env: Any) -> Any:
        """``content`` with its templates, and the return values of tasks in it, as they are in this run."""


class LaunchTask(TaskAtWork, Protocol):
    """One of batches: each try submits, and waits."""

    outlets: Any
    execution_timeout: timedelta | None

    def submit(
        self,
        context: Context,
        *,
        conf: dict[str, str],
        arguments: list[str],
        env: dict[str, str],
        on_settings: Callable[[Mapping[str, str], frozenset[str]], None],
        on_line: Callable[[str], str | None],
        offer: Offer | None = None,
    ) -> None:
        """One run of the driver program; returns when it has ended well, raises ``AirflowException`` else.

        :param offer: of warm applications; None: it is submitted as an application of its own.
        """

    def end_submit(self) -> None:
        """Stop the application, but not this task."""

    def on_kill(self) -> None:
        """Stop the application, and submit no other."""


class StreamTask(TaskAtWork, Protocol):
    """One of a stream: its driver outlives it."""

    def describe_driver(
        self,
        *,
        conf: dict[str, str],
        arguments: list[str],
        env: dict[str, str],
        file: Path,
        on_settings: Callable[[Mapping[str, str], frozenset[str]], None],
    ) -> Described:
        """How the driver program is started; ``file`` is where its settings will be."""

    def defer(self, *, trigger: Any, method_name: str) -> Any:
        """End this task for now: what the trigger tells is for the method of that name."""
