"""The launch task: one Spark application for one group of steps.

Only what a parse of the DAG file needs is here; :mod:`~airflow_dagsched.provider.running` is loaded by a run.
"""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_dagsched.provider.links import SparkUiLink
from airflow_dagsched.provider.outlets import outlets_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.plan.groups import Grouped
    from airflow_dagsched.provider.dataflow import SparkDataflow
    from airflow_dagsched.provider.graph import DataflowGraph
    from airflow_dagsched.provider.submit import FollowedSubmit

DRIVER = str(Path(__file__).parents[1] / "spark" / "driver.py")

SET_BY_US = frozenset(
    {"application", "dag", "durable", "flow", "graph", "group", "outlets", "task_group", "task_id", "trigger_rule"}
)
"""Arguments of a launch task that are not the author's to give."""


class LaunchOperator(SparkSubmitOperator):
    """Runs the steps of one group in one Spark application."""

    ui_color = "#ffd9b3"
    operator_extra_links = (SparkUiLink(),)
    shallow_copy_attrs = ("flow", "graph", "group")

    def __init__(self, *, flow: SparkDataflow, graph: DataflowGraph, group: Grouped, **kwargs: Any) -> None:
        kwargs.pop("trigger_rule", None)  # from default_args, which mean the author's tasks
        super().__init__(
            application=DRIVER,
            conn_id=flow.conn_id,
            conf=dict(flow.conf),
            name=f"{flow.dag.dag_id}.{flow.group_id}",
            trigger_rule="all_done",
            outlets=outlets_of(flow, group.steps),
            durable=False,
            doc_md=_doc(group),
            **kwargs,
        )
        self.flow = flow
        self.graph = graph
        self.group = group
        self.stopped = False
        """Whether Airflow ended this task: then nothing is submitted any more."""

    @property
    def skippers(self) -> list[str]:
        """Ordinary tasks above the dataflow that may skip what is below them."""
        tasks = self.flow.dag.task_dict
        return [task_id for task_id in self.graph.ordinary if tasks[task_id].inherits_from_skipmixin]

    @property
    def history(self) -> Path:
        """File with what the dataflow's steps took in earlier runs."""
        from airflow_dagsched.provider.history import history_file

        return history_file(self.flow.work_dir, self.dag_id, str(self.flow.group_id))

    def resolve_template_files(self) -> None:
        """Called once a DAG file has been read, when all edges are known: the time to warn of a stale plan file."""
        super().resolve_template_files()
        first = next(iter(self.flow.launches()), None)
        if self.flow.stale and first is self:
            warnings.warn(self.flow.stale, stacklevel=1)

    def other_launches(self) -> list[str]:
        """Task ids of the launch tasks of the dataflow's other groups."""
        return [launch.task_id for launch in self.flow.launches() if launch.task_id != self.task_id]

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Run what can run; fail if any step failed; return what was measured."""
        from airflow_dagsched.provider.running import GroupRun

        return GroupRun.of(self, context).execute()

    def submit(
        self, context: Context, *, conf: dict[str, str], arguments: list[str], env: dict[str, str], on_line: Any
    ) -> None:
        """One spark-submit of the driver program; returns when it has ended well.

        Raises ``AirflowException`` where it ended otherwise.
        """
        self.conf = conf
        self.application_args = arguments
        self.env_vars = env
        self._hook = self._get_hook()
        self._hook.on_line = on_line
        super().execute(context)

    def end_submit(self) -> None:
        """Stop the application, but not this task: ``submit`` then raises."""
        super().on_kill()

    def on_kill(self) -> None:
        """Stop the application."""
        self.stopped = True
        super().on_kill()

    def _get_hook(self) -> FollowedSubmit:
        from airflow_dagsched.provider.submit import FollowedSubmit, find_spark_submit

        self._spark_binary = self._spark_binary or find_spark_submit(self.group.id)
        plain = super()._get_hook()
        plain.__class__ = FollowedSubmit
        return plain  # type: ignore[return-value]


@cache
def launch_settings() -> frozenset[str]:
    """Every argument a launch task takes, its base classes' too."""
    signatures = [
        inspect.signature(vars(base)["__init__"]) for base in LaunchOperator.__mro__ if "__init__" in vars(base)
    ]
    return frozenset(name for signature in signatures for name in signature.parameters)


def _doc(group: Grouped) -> str:
    return f"Runs {len(group.steps)} step(s) as one Spark application: {', '.join(group.steps)}.\n\n{group.reason}"
