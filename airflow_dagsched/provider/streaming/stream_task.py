"""What the parts of a stream's launch ask of the Airflow task that they run in. (The wiring, which comes later, makes
it.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec
    from airflow_dagsched.provider.submission.spark_submit import Described


class StreamTask(Protocol):
    """A launch task of a stream, at work."""

    spec: LaunchSpec
    stopped: bool
    """Whether Airflow ended this task."""
    spark_ui: str
    """Address of the application's page; empty until it is known."""

    @property
    def spark_submit(self) -> str:
        """The program to run."""

    @property
    def dag(self) -> Any:
        """Its DAG, as Airflow read it for this run."""

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

    def get_template_env(self) -> Any:
        """Of the DAG."""

    def render_template(self, content: Any, context: Context, jinja_env: Any) -> Any:
        """``content`` with its templates, and the return values of tasks in it, as they are in this run."""

    def defer(self, *, trigger: Any, method_name: str) -> Any:
        """End this task for now: what the trigger tells is for the method of that name."""
