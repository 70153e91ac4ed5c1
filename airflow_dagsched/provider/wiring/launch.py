"""The launch task: one Spark application for one group of steps.

Only what a parse of the DAG file needs is here; :mod:`~airflow_dagsched.provider.runtime.execute` is loaded by a run.
"""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_dagsched.provider.following.links import SparkUiLink
from airflow_dagsched.provider.spec.outlets import list_outlets
from airflow_dagsched.provider.wiring.task_runtimes import check_all_above

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.plan.grouping.coarsest import Grouped
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec, LaunchSpec
    from airflow_dagsched.provider.submission.spark_submit import FollowedSubmit

DRIVER = str(Path(__file__).parents[2] / "spark" / "driver" / "main.py")

_OURS = "the launch task sets it"
_CLIENT_MODE = "the driver program runs beside the Airflow worker (client mode)"
SET_BY_US = {
    **dict.fromkeys(("application", "application_args", "dag", "durable", "flow", "graph", "group", "spec"), _OURS),
    **dict.fromkeys(("java_class", "multiple_outputs", "outlets", "task_group", "task_id", "trigger_rule"), _OURS),
    **dict.fromkeys(("deploy_mode", "reconnect_on_retry", "status_poll_interval"), _CLIENT_MODE),
    **dict.fromkeys(("track_driver_via_k8s_api", "yarn_rm_auth", "yarn_track_via_rm_api"), _CLIENT_MODE),
    "map_index_template": "launch tasks are not mapped",
}
"""Arguments of a launch task that are not the author's to give, and why."""
OF_THE_FLOW = frozenset({"conf", "conn_id", "doc_md", "name"})
"""Arguments of a launch task that follow from arguments of the dataflow."""


class LaunchOperator(SparkSubmitOperator):
    """Runs the steps of one group in one Spark application."""

    ui_color = "#ffd9b3"
    operator_extra_links = (SparkUiLink(),)
    shallow_copy_attrs = ("spec",)

    def __init__(self, *, spec: LaunchSpec, **kwargs: Any) -> None:
        # Said explicitly also where it is Airflow's default: else the DAG's default_args, which mean the author's own
        # tasks, would have their say.
        kwargs.pop("trigger_rule", None)
        flow, group = spec.flow, spec.group
        super().__init__(
            application=DRIVER,
            application_args=None,
            java_class=None,
            deploy_mode="client",
            track_driver_via_k8s_api=False,
            yarn_track_via_rm_api=False,
            reconnect_on_retry=None,
            multiple_outputs=False,
            conn_id=flow.conn_id,
            conf={},  # what is here is in the serialized DAG, for everybody who may see it
            name=f"{flow.dag_id}.{flow.name}",
            trigger_rule="all_done",
            outlets=list_outlets(flow.steps[name] for name in group.steps),
            durable=False,
            doc_md=_describe_group(group),
            **kwargs,
        )
        self.spec = spec
        self.stopped = False
        """Whether Airflow ended this task: then nothing is submitted any more."""
        self.spark_ui = ""
        """Address of the latest application's page; empty until there is one."""

    @property
    def flow(self) -> DataflowSpec:
        """The dataflow that it runs a group of."""
        return self.spec.flow

    @property
    def group(self) -> Grouped:
        """The steps that it runs."""
        return self.spec.group

    def resolve_template_files(self) -> None:
        """Called once a DAG file has been read, when all edges are known: the time to warn of a stale plan file, and to
        refuse (:class:`InvalidInput`) a runtime of a task that no step waits for.
        """
        super().resolve_template_files()
        if next(iter(self.spec.launches)) != self.task_id:
            return  # once a dataflow is enough
        check_all_above(self.spec.flow)
        if self.spec.stale:
            warnings.warn(self.spec.stale, stacklevel=1)

    @property
    def spark_submit(self) -> str:
        """The program to run: the author's, else the one at hand. Raises :class:`LaunchRefused` where there is none."""
        from airflow_dagsched.provider.submission.spark_submit import find_spark_submit

        return self._spark_binary or find_spark_submit(self.spec.group.id)

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Run what can run; fail if any step failed; return what was measured."""
        # Late, and only here: a parse of the DAG file loads nothing of what a run needs.
        from airflow_dagsched.provider.runtime.execute import execute

        return execute(self, context)

    def submit(
        self,
        context: Context,
        *,
        conf: dict[str, str],
        arguments: list[str],
        env: dict[str, str],
        on_settings: Any,
        on_line: Any,
        offer: Any = None,
    ) -> None:
        """One spark-submit of the driver program; returns when it has ended well.

        :param on_settings: called with all settings and the names of those given here, before any is written.
        :param offer: of warm applications; None: the application is this submit's own.
        Raises ``AirflowException`` where it ended otherwise.
        """
        self.conf = conf
        self.application_args = arguments
        self._hook = self._get_hook()
        self._hook.environment = env
        self._hook.on_settings = on_settings
        self._hook.on_line = on_line
        self._hook.offer = offer
        super().execute(context)

    def end_submit(self) -> None:
        """Stop the application, but not this task: ``submit`` then raises."""
        super().on_kill()

    def on_kill(self) -> None:
        """Stop the application."""
        self.stopped = True
        super().on_kill()

    def _get_hook(self) -> FollowedSubmit:
        from airflow_dagsched.provider.submission.spark_submit import FollowedSubmit

        # Looked for at launch, not at parse: the scheduler's machine need not have one.
        self._spark_binary = self.spark_submit
        plain = super()._get_hook()
        # The operator makes its own hook, of a dozen arguments that change between releases: ours is that one, and
        # more.
        plain.__class__ = FollowedSubmit
        return plain  # type: ignore[return-value]


@cache
def list_launch_settings() -> frozenset[str]:
    """Every argument a launch task takes, its base classes' too."""
    # Airflow takes whatever some class on the way to BaseOperator names: ``**kwargs`` hides it from
    # ``LaunchOperator``'s own.
    signatures = [
        inspect.signature(vars(base)["__init__"]) for base in LaunchOperator.__mro__ if "__init__" in vars(base)
    ]
    named = [each for signature in signatures for each in list(signature.parameters.values())[1:]]
    return frozenset(each.name for each in named if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD))


def _describe_group(group: Grouped) -> str:
    return f"Runs {len(group.steps)} step(s) as one Spark application: {', '.join(group.steps)}.\n\n{group.reason}"
