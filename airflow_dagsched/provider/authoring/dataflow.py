"""``SparkDataflow``: a task group whose Spark steps run as few applications as can be."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk.definitions.mappedoperator import MappedOperator

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.managers.author_conf import read_count
from airflow_dagsched.launch.protocol.executor_settings import CORES
from airflow_dagsched.launch.warm.terms import read_duration
from airflow_dagsched.model.codec import check_value
from airflow_dagsched.plan.settings import DEFAULTS, Mode, Settings, refuse_idle_lists
from airflow_dagsched.provider.authoring.flow_settings import (
    find_launch_args_mistake,
    find_mistake,
    mistake_in_pool,
    take_streaming,
)
from airflow_dagsched.provider.authoring.policy_check import check_policy, check_settings_act
from airflow_dagsched.provider.authoring.read_dataflow import DeclaredFlow, read_dataflow
from airflow_dagsched.provider.authoring.step_group import StepGroup
from airflow_dagsched.provider.spec.configuration import read_warm_s
from airflow_dagsched.provider.spec.dataflow_spec import FlowSettings, Replan, make_flow_error
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir, parse_local_root
from airflow_dagsched.provider.wiring.launch import LaunchOperator

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

    from airflow_dagsched.launch.protocol.interval import Interval
    from airflow_dagsched.launch.streams.settings import StreamSettings
    from airflow_dagsched.model.cluster import Cluster
    from airflow_dagsched.model.dataflow import Dataflow
    from airflow_dagsched.plan.grouping.coarsest import Grouping
    from airflow_dagsched.provider.authoring.steps import StepMirror
    from airflow_dagsched.provider.spec.dataflow_graph import DataflowGraph
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec, RepeatBlock
    from airflow_dagsched.provider.wiring.edges import Wiring

SPARK_OPERATORS = "airflow.providers.apache.spark."
"""Operators from here start Spark by themselves: they cannot stand among steps."""


class SparkDataflow(StepGroup):
    """Group of Spark steps, planned together.

    :param name: group id; also the first part of the ids of its tasks.
    :param conn_id: Airflow connection of type ``spark``.
    :param work_dir: folder for manifests, events, commits and datasets handed from one application to another; on a
        disk that Airflow's workers and the driver program share. See ``docs/security.md`` for who may write it.
    :param cluster: path of a cluster file (or a ``Cluster``), where the plan shall be cut to fit it.
    :param run: ``"planned"`` or ``"per_step"`` (one spark-submit a step: for debugging and comparing).
    :param conf: Spark settings for every application, templates in their values rendered at launch. They count
        before the plan's own, and those before ``spark-defaults.conf``; a step's ``application=`` counts before all.
    :param slots: most steps side by side in one application, 1 to 64.
    :param apart: lists of step ids no two of which are in one application.
    :param together: lists of step ids that are in one application.
    :param max_steps_per_group: of one application, at most.
    :param failures_per_hour: of a running application, as expected: a cut that saves repeated work may pay.
    :param task_runtimes: seconds of ordinary tasks, by task id, where they are long: the steps that do not wait
        for a three-hour sensor then need not wait for those that do.
    :param prune: how what a run does not need is left out: ``"auto"``, ``"declared"``, ``"analysed"`` or False.
    :param pruned: how mirrors of steps with nothing to do end.
    :param replan: what launches of a run that has begun may change, by what was measured: ``"sizes"`` (how large each
        application is, and where); ``"regroup"``: a launch task may also run steps of later ones that are ready, if the
        run then ends sooner; ``"off"``: what was known as the run began counts to its end.
    :param placement: policy that places the steps on workers, by name or as the dotted path of your own class; see
        ``docs/placement.md``. A step may name another one: then it runs in another application.
    :param placement_settings: settings of the policies, by name.
    :param pool_cores: size of ``pool``, where its slots are cores: a launch task then takes as many as it can use.
    :param lease_s: seconds after which an output whose writer died may be written by another.
    :param stall_s: seconds without progress (no task ended, no row read) until a step's log says why; 0: never.
    :param warm: how long an application stays when its group has ended well, for the next one that fits it: a text such
        as ``"10 minutes"``, a timedelta, or seconds; 0: none does. Left out: ``[dagsched] warm``. See
        ``docs/operating.md``.
    :param keep_columns: of rows that several steps read, or steps of other applications: ``"used"``, those that
        they use, or ``"all"``.
    :param mode: ``"streaming"``: its steps never end; see ``docs/streaming.md`` for what else such a dataflow takes.
    :param launch_args: everything else a task takes (pool, queue, retries, execution_timeout, default_args,
        priority_weight, ...): for the launch tasks, never for the mirrors.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own, by keyword
        self,
        name: str,
        *,
        conn_id: str = "spark_default",
        work_dir: str | None = None,
        cluster: str | Cluster | None = None,
        run: Literal["planned", "per_step"] = "planned",
        conf: Mapping[str, str] | None = None,
        slots: int = DEFAULTS.slots,
        apart: Sequence[Sequence[str]] = (),
        together: Sequence[Sequence[str]] = (),
        max_steps_per_group: int = DEFAULTS.max_steps_per_group,
        failures_per_hour: float = 0.0,
        task_runtimes: Mapping[str, float] | None = None,
        prune: Mode = "auto",
        pruned: Literal["success", "skipped"] = "success",
        replan: Replan = "sizes",
        placement: str = "auto",
        placement_settings: Mapping[str, Any] | None = None,
        pool_cores: int | None = None,
        lease_s: float = 60.0,
        stall_s: float = 300.0,
        warm: str | float | timedelta | None = None,
        keep_columns: Literal["used", "all"] = "used",
        tooltip: str = "",
        doc_md: str | None = None,
        prefix_group_id: bool = True,
        **launch_args: Any,
    ) -> None:
        super().__init__(group_id=name, tooltip=tooltip, doc_md=doc_md, prefix_group_id=prefix_group_id)
        streaming = take_streaming(launch_args, self.make_error)
        mistake = find_mistake(
            {"conn_id": conn_id, "work_dir": work_dir, "cluster": cluster, "run": run, "conf": conf, "apart": apart,
             "together": together, "task_runtimes": task_runtimes, "prune": prune, "pruned": pruned,
             "replan": replan, "placement": placement, "placement_settings": placement_settings,
             "pool_cores": pool_cores, "lease_s": lease_s, "stall_s": stall_s, "warm": warm,
             "keep_columns": keep_columns}
        ) or find_launch_args_mistake(launch_args)  # fmt: skip
        if mistake is not None:
            raise self.make_error(mistake[1], mistake[0])
        # In Airflow's own order: what is said at the task counts before default_args, the group's before the DAG's.
        declared_args = {**self.dag.default_args, **(launch_args.get("default_args") or {}), **launch_args}
        warm_s = self._resolve_warm(warm, run, streaming)
        planner = self._check_settings(
            Settings(
                slots=slots,
                apart=tuple(map(tuple, apart)),
                together=tuple(map(tuple, together)),
                max_steps_per_group=max_steps_per_group,
                failures_per_hour=failures_per_hour,
                warm=warm_s > 0,
                container_cores=read_count(conf or {}, CORES) or DEFAULTS.container_cores,  # the author's win at launch
            )
        )
        if (mistake := mistake_in_pool(pool_cores, declared_args)) is not None:
            raise self.make_error(mistake[1], mistake[0])
        self.declared = FlowSettings(
            conn_id=conn_id,
            work_dir=self._resolve_work_dir(work_dir),
            cluster=cluster,
            run=run,
            conf=dict(conf or {}),
            prune=prune,
            pruned=pruned,
            replan=replan,
            settings=self._check_placement(placement, planner, placement_settings or {}),
            task_runtimes=dict(task_runtimes or {}),
            placement=placement,
            placement_settings=dict(placement_settings or {}),
            pool_cores=pool_cores,
            lease_s=lease_s,
            stall_s=stall_s,
            warm_s=warm_s,
            keep_columns=keep_columns,
            launch_args=launch_args,
            authors_args=declared_args,
            streaming=streaming,
        )
        self.steps: dict[str, StepMirror] = {}
        self.repeats: tuple[RepeatBlock, ...] = ()
        self._hidden_from: set[str] = set()
        """Skipping tasks that were taught not to see our edges."""
        self._wiring: Wiring | None = None
        self._busy = False

    def _check_settings(self, settings: Settings) -> Settings:
        """The planner's settings; raises :class:`InvalidInput` naming the argument."""
        try:
            refuse_idle_lists(settings := check_value(Settings, settings, "settings"))
            return settings
        except InvalidInput as error:
            raise self.make_error(error.rule, error.field) from None

    def _check_placement(self, policy: str, settings: Settings, named: Mapping[str, Any]) -> Settings:
        """The planner's settings, with what those ``named`` for the policies say of sizes."""
        try:
            return check_policy(policy, settings, named)
        except InvalidInput as error:
            raise self.make_error(error.rule, error.field or "placement") from None

    def _resolve_work_dir(self, work_dir: str | None) -> str:
        """The folder that counts."""
        try:
            default = find_default_work_dir()  # looked at in any case: launches reserve their room there
            return default if work_dir is None else str(parse_local_root(work_dir))
        except InvalidInput as error:
            raise self.make_error(error.rule, error.field) from None

    def _resolve_warm(self, warm: Any, run: str, streaming: StreamSettings | None) -> float:
        """Seconds; the applications of streams, and of steps that are submitted one by one, stay for nobody."""
        if run == "per_step" or streaming is not None:
            return 0.0
        return read_warm_s() if warm is None else read_duration(warm)

    # What the steps call while the author writes them down

    def add_step(self, step: StepMirror) -> None:
        """Take in a step made inside this dataflow."""
        self.steps[self.step_id(step.task_id)] = step

    def step_id(self, task_id: str) -> str:
        """Id of a step inside the dataflow: its task id without the group's own part."""
        prefix = f"{self.group_id}."
        return task_id.removeprefix(prefix) if self.prefix_group_id else task_id

    def note_new_edge(self) -> None:
        """An edge was made; after the ``with`` block that means wiring again."""
        if self._wiring is not None and not self._busy:
            self._wire_groups()

    def launches(self) -> tuple[LaunchOperator, ...]:
        """The launch tasks, one a group."""
        return tuple(self._wiring.launches.values()) if self._wiring else ()

    def hide_our_edges(self) -> None:
        """Leave only the author's edges in this process (the scheduler has its own copy of the DAG)."""
        if self._wiring is not None:
            with self._ignore_own_edges():
                self._wiring.hide_edges()

    def repeat(
        self,
        steps: Sequence[Any],
        *,
        until: Callable[..., Any] | None = None,
        max_iterations: int,
        feedback: Mapping[str, Any] | None = None,
    ) -> None:
        """Make ``steps`` one composite step that runs until ``until`` is true.

        :param steps: return values of the steps, in the order they run in one iteration.
        :param until: gets, by name, the last outputs of the steps it asks for (DataFrames or plain values).
        :param max_iterations: at most so many.
        :param feedback: ``{"step.parameter": step}``: from the second iteration on the parameter is that step's
            last output. Left out: the last step's output goes back into the first step's first input.
        """
        from airflow_dagsched.provider.authoring.repeats import make_repeat_block

        self.repeats += (make_repeat_block(self._declared_flow(), steps, until, max_iterations, feedback or {}),)
        # Said after the block it changes the groups as an edge does.
        self.note_new_edge()

    def _declared_flow(self) -> DeclaredFlow:
        """What was said so far."""
        return DeclaredFlow(self.declared, str(self.group_id), self.dag, self.steps, self.repeats)

    # What is handed on

    @property
    def spec(self) -> DataflowSpec:
        """The dataflow as wiring, launches and commands know it; until the ``with`` block ends, as it is so far."""
        if self._wiring is not None:
            return self._wiring.flow
        return read_dataflow(self._declared_flow())

    @property
    def graph(self) -> DataflowGraph:
        """Steps, channels and the ordinary tasks around them, as the author wrote them."""
        return self.spec.graph

    @property
    def settings(self) -> Settings:
        """What the author set for the plan."""
        return self.declared.settings

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow as the planner reads it."""
        return self.graph.dataflow

    @property
    def grouping(self) -> Grouping:
        """The groups the launch tasks stand for."""
        assert self._wiring is not None, "the groups are known after the with block"
        return self._wiring.grouping

    def run_local(
        self, interval: Interval | None = None, inputs: Mapping[str, Any] | None = None, *, spark: Any = None
    ) -> dict[str, Any]:
        """Run the steps in this process, without Airflow: for unit tests.

        :param inputs: results by step or task id, instead of running it (DataFrames, or plain values). Of a stream's
            source what its function gets; the other steps then return what the stream gives in the end, the windows
            that are still open included.
        :returns: what each step returned, by step id. Tables are not written.
        """
        from airflow_dagsched.provider.authoring.rehearsal import run_local

        return run_local(self.spec, self.dag, interval, inputs or {}, spark)

    # TaskGroup

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if exc_type is None:  # else the author's own error would hide behind one about half a dataflow
                self._check_children()
                self._check_policy_settings()
                self._repeat_early_edges()
                self._wire_groups()
        finally:
            # In any case: Airflow keeps a stack of open groups, and the file's next task would land in this one.
            super().__exit__(exc_type, exc_value, traceback)

    def _check_policy_settings(self) -> None:
        """Only now: steps may name policies of their own."""
        policies = dict.fromkeys((self.declared.placement, *(step.declared.placement for step in self.steps.values())))
        try:
            check_settings_act(
                [name for name in policies if name], self.declared.settings, self.declared.placement_settings
            )
        except InvalidInput as error:
            raise self.make_error(error.rule, error.field) from None

    def _repeat_early_edges(self) -> None:
        """Edges of the group made before it had steps: Airflow ties them to nothing."""
        tasks, groups = self.dag.task_dict, self.dag.task_group.get_task_group_dict()
        above = [tasks[i] for i in self.upstream_task_ids] + [groups[i] for i in self.upstream_group_ids if i]
        below = [tasks[i] for i in self.downstream_task_ids] + [groups[i] for i in self.downstream_group_ids if i]
        # A group hands its edges to the tasks that are its roots or leaves just then: before the first step, to nobody.
        if above:
            super().set_upstream(above)
        if below:
            super().set_downstream(below)

    def update_relative(self, other: Any, upstream: bool = True, edge_modifier: Any = None) -> None:
        """``task >> flow``: the author means the first steps, and ``flow >> task`` the last ones."""
        if self._wiring is None or self._busy:
            super().update_relative(other, upstream, edge_modifier)
        elif upstream:
            self.set_upstream(other, edge_modifier)
        else:
            self.set_downstream(other, edge_modifier)

    def set_upstream(self, task_or_task_list: Any, edge_modifier: Any = None) -> None:
        """Airflow's; the groups follow the new edge."""
        with self._wire_afterwards():
            super().set_upstream(task_or_task_list, edge_modifier)

    def set_downstream(self, task_or_task_list: Any, edge_modifier: Any = None) -> None:
        """Airflow's; the groups follow the new edge."""
        with self._wire_afterwards():
            super().set_downstream(task_or_task_list, edge_modifier)

    def get_roots(self) -> Generator[Any, None, None]:
        """The author's first tasks: launch tasks and gates are ours."""
        yield from self._list_author_tasks(super().get_roots)

    def get_leaves(self) -> Generator[Any, None, None]:
        """The author's last tasks."""
        yield from self._list_author_tasks(super().get_leaves)

    def _list_author_tasks(self, find: Callable[[], Iterable[Any]]) -> list[Any]:
        if self._wiring is None:
            return list(find())
        with self._ignore_own_edges():
            self._wiring.hide_edges()
            found = [task for task in find() if task not in self._wiring.tasks]
            self._wiring.show_edges()
        return found

    @contextmanager
    def _wire_afterwards(self) -> Iterator[None]:
        """Edges made inside are the author's; ours are made anew afterwards."""
        if self._wiring is None or self._busy:
            yield
            return
        with self._ignore_own_edges():
            # Ours go first: Airflow ties the group's new edge to its roots and leaves, which have to be the author's
            # tasks.
            self._wiring.undo_wiring()
            self._wiring = None
            yield
        self._wire_groups()

    @contextmanager
    def _ignore_own_edges(self) -> Iterator[None]:
        """Our own edges are no reason to wire again."""
        # Sets of the mirrors report each id that is added (see ``steps._Above``), also those that the wiring itself
        # adds.
        before, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = before

    def _wire_groups(self) -> None:
        from airflow_dagsched.provider.wiring.edges import Wiring, hide_from_skippers

        with self._ignore_own_edges():
            if self._wiring is not None:
                self._wiring.undo_wiring()
                self._wiring = None
            mirrors: dict[str, BaseOperator] = {**self.steps}
            self._wiring = Wiring.of(self.spec, self, mirrors)
            hide_from_skippers(self.dag, self._wiring.flow.graph.ordinary, self._hidden_from, self.hide_our_edges)

    def _check_children(self) -> None:
        if not self.steps:
            raise self.make_error("has no step: write @task.spark_step functions and call them inside the with block")
        for task in self.iter_tasks():
            # a mapped task is of Airflow's own class
            kind = task.operator_class if isinstance(task, MappedOperator) else type(task)
            bases = () if kind is LaunchOperator else getattr(kind, "__mro__", ())  # ours start Spark, too
            if any(base.__module__.startswith(SPARK_OPERATORS) for base in bases):
                raise self.make_error(
                    f"{task.task_id!r} is a {kind.__name__}, which starts Spark by itself: write it as a step "
                    "(@task.spark_step, SparkSqlStep) or move it out of the with block"
                )

    def make_error(self, rule: str, field: str = "") -> InvalidInput:
        """An error about this dataflow, naming its DAG."""
        return make_flow_error(self.dag.dag_id, str(self.group_id), rule, field)
