"""Steps as authors write them: ``@task.spark_step`` and ``SparkSqlStep``.

In Airflow a step is a *mirror*: a task that never runs the step itself. It is deferred as soon as that runs,
without a worker slot, and ends as its step ends inside the launch task of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk.bases.decorator import _TaskDecorator, get_unique_task_id
from airflow.sdk.definitions._internal.contextmanager import DagContext, TaskGroupContext
from airflow.sdk.definitions.xcom_arg import XComArg

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.provider.authoring.policy_check import check_policy
from airflow_dagsched.provider.authoring.step_group import find_enclosing_group
from airflow_dagsched.provider.authoring.step_settings import DECLARED, HONOURED, find_step_mistake
from airflow_dagsched.provider.mirrors.held import HOLDS_NOTHING
from airflow_dagsched.provider.spec.call_arguments import (
    bind_arguments,
    find_forbidden_names,
    find_source,
    iterate_leaves,
    list_operators,
    split_call,
)
from airflow_dagsched.provider.spec.channel_declaration import ON_THE_CALL, Said, take_channel_words, unwrap_channel
from airflow_dagsched.provider.spec.step_declaration import Declared

if TYPE_CHECKING:
    from airflow.sdk import Context


LEVELS = "high_availability"
"""Of our policies the one that levels the load of workers."""


class StepMirror(BaseOperator):
    """Shows one step. What it needs to conclude is set by the dataflow when all steps are known."""

    ui_color = "#e8f0fb"
    start_from_trigger = True
    shallow_copy_attrs: Sequence[str] = ("flow", "function", "arguments", "channels", "declared")

    def __init__(self, *, task_id: str, trigger_rule: str = "all_success", outlets: Any = None, **kwargs: Any) -> None:
        declared = {name: kwargs.pop(name) for name in DECLARED if name in kwargs}
        # Before Airflow makes something of them; said only after, when the step knows the DAG that the message names.
        mistake = find_step_mistake(kwargs)
        honoured = {name: value for name, value in kwargs.items() if name in HONOURED}
        # The author's rule is the launch's to apply. With this one all mirrors of a group are deferred at once, however
        # deep: with ordinary ones a chain of ten would take 3 s a level.
        super().__init__(task_id=task_id, trigger_rule="one_done", **{**honoured, **HOLDS_NOTHING})
        self.flow = find_enclosing_group(self, self.make_error)
        if mistake is not None:
            raise self.make_error(mistake[1], mistake[0])
        # Not Airflow's own ``outlets``: a task that a trigger ends registers no asset event, so the launch task has
        # them.
        self.step_outlets = list(outlets or [])
        self.function: Callable[..., Any] | None = None
        self.arguments: dict[str, Any] = {}
        self.channels: Said = ()
        self.sql: str | None = None
        try:
            self.declared = Declared(rule=str(trigger_rule), **declared)
        except (ValueError, TypeError) as error:
            raise self.make_error(str(error)) from None
        if self.declared.of_streams and self.flow.declared.streaming is None:
            raise self.make_error(f"{self.declared.of_streams} needs SparkDataflow(..., mode='streaming')")
        self._check_placement()
        self.flow.add_step(self)
        # Airflow tells nobody of a new edge; this set is where each one arrives.
        self.upstream_task_ids = _Above(self.upstream_task_ids, self.flow.note_new_edge)

    def _check_placement(self) -> None:
        flow = self.flow.declared
        named = self.declared.placement or flow.placement
        # A class of the author's own may look at it, of ours one does.
        if self.declared.weight != 1 and named != LEVELS and "." not in named:
            raise self.make_error(f"counts for placement={LEVELS!r} and classes of your own, not {named!r}", "weight")
        if self.declared.placement:
            try:
                check_policy(self.declared.placement, flow.settings, flow.placement_settings)
            except InvalidInput as error:
                raise self.make_error(error.rule, "placement") from None

    def take_arguments(self, arguments: Mapping[str, Any], words: Mapping[str, Any]) -> None:
        """Keep what the step is called with, and what is said of its channels in there and in ``words``."""
        try:
            self.arguments, self.channels = take_channel_words(arguments, words, _find_rows)
        except ValueError as error:
            raise self.make_error(str(error)) from None

    @classmethod
    def partial(cls, task_id: str = "?", **kwargs: Any) -> NoReturn:
        """Refused: mapped tasks cannot start from a trigger."""
        _refuse_mapping(task_id)

    def make_error(self, rule: str, field: str = "") -> InvalidInput:
        """An error about this step, naming DAG and step."""
        where = f"DAG {self.dag.dag_id!r}, step {self.task_id!r}" if self.has_dag() else f"step {self.task_id!r}"
        return InvalidInput(where, field, rule)

    def execute(self, context: Context) -> Any:
        """Without a triggerer (``dag.test()``): look once, then come back later."""
        from airflow_dagsched.provider.mirrors.mirror import conclude_or_reschedule

        return conclude_or_reschedule(self.start_trigger_args, context)  # type: ignore[arg-type]  # set by the wiring


def _find_rows(value: Any) -> tuple[str, str] | None:
    """Task and output of the step whose rows ``value`` stands for; None where it stands for none."""
    operator, output = find_source(value) or (value, "")
    return (operator.task_id, output) if isinstance(operator, StepMirror) else None


class _Above(set[str]):
    """Ids of the tasks above a step. Whoever adds one, after the ``with`` block too, changes the groups."""

    def __init__(self, ids: Iterable[str], changed: Callable[[], None]) -> None:
        super().__init__(ids)
        self._changed = changed

    def add(self, task_id: str) -> None:
        if task_id not in self:
            super().add(task_id)
            self._changed()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of the DAG has plain sets: its groups are made already."""
        return set, (list(self),)


class PythonStep(StepMirror):
    """A Python function that gets a session and DataFrames."""

    custom_operator_name = "@task.spark_step"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Sequence[Any] = (),
        op_kwargs: Mapping[str, Any] | None = None,
        multiple_outputs: bool = False,
        task_id: str,
        **kwargs: Any,
    ) -> None:
        # As Airflow's decorators do: a function that is called twice makes ``name`` and ``name__1``.
        unique = get_unique_task_id(task_id, kwargs.get("dag"), kwargs.get("task_group"))
        refused = {"multiple_outputs": True} if multiple_outputs else {}  # find_step_mistake says what to do instead
        super().__init__(task_id=unique, **{**kwargs, **refused})
        self.function = python_callable
        words, given = split_call(python_callable, op_kwargs or {}, ON_THE_CALL)
        try:
            arguments = bind_arguments(python_callable, tuple(op_args), given)
        except TypeError as error:
            raise self.make_error(f"{python_callable.__name__}() {error}") from None
        self.take_arguments(arguments, words)
        connect_arguments(self)


class _IdFirst(type(BaseOperator)):  # type: ignore[misc]
    """Lets the id stand first without its keyword, as functions' names do."""

    def __call__(cls, *task_id: str, **kwargs: Any) -> Any:
        # Airflow's metaclass of operators takes no positional argument.
        return super().__call__(**dict(zip(("task_id",), task_id, strict=True)) if task_id else {}, **kwargs)


class SparkSqlStep(StepMirror, metaclass=_IdFirst):
    """A SQL statement over the rows of other steps.

    :param sql: SQL text, or the path of a ``.sql`` file relative to the DAG file; templated.
    :param inputs: return values of steps, as views named after their step (or after the output, for a step
        with several); or a mapping from view name to return value.
    :param bytes: of its only input's dataset, or by view name.
    :param routing: of its only input's rows, or by view name; see ``channel``.
    """

    def __init__(
        self, *, task_id: str, sql: str, inputs: Sequence[Any] | Mapping[str, Any] = (), **kwargs: Any
    ) -> None:
        words = {word: kwargs.pop(word) for word in ON_THE_CALL if word in kwargs}
        super().__init__(task_id=task_id, **kwargs)
        self.sql = self._read_sql(sql)
        self.take_arguments(inputs if isinstance(inputs, Mapping) else self._name_views(inputs), words)
        connect_arguments(self)

    def _read_sql(self, sql: str) -> str:
        if not sql.strip().endswith(".sql"):
            return sql
        # Read at parse, not by ``template_ext``: what Airflow would render is the mirror, which runs nothing.
        path = Path(self.dag.folder) / sql.strip()
        if not path.is_file():
            raise self.make_error(f"no file {str(path)!r}", "sql")
        return path.read_text()

    def _name_views(self, inputs: Sequence[Any]) -> dict[str, Any]:
        named = [(_derive_view_name(item), item) for item in inputs]
        views = dict(named)
        if len(views) != len(named):
            raise self.make_error("two inputs have one view name: pass a mapping from view name to input", "inputs")
        return views


def _derive_view_name(value: Any) -> str:
    value = unwrap_channel(value)
    if isinstance(value, XComArg):
        operator, _ = next(iter(XComArg.iter_xcom_references(value)))
        key = getattr(value, "key", "return_value")
        return str(operator.label) if key == "return_value" else key
    return str(getattr(value, "label", value))


def connect_arguments(step: PythonStep | SparkSqlStep) -> None:
    """Check the step's arguments and make Airflow's edges for the return values among them."""
    try:
        names = find_forbidden_names([list(step.arguments.values()), step.sql])
    except ValueError as error:
        raise step.make_error(str(error)) from None
    if names:
        raise step.make_error(
            f"a template asks for {', '.join(names)}: it is rendered in the launch task, not in the step"
        )
    # an operator stands for its return value
    bare = [leaf for leaf in iterate_leaves(step.arguments) if isinstance(leaf, StepMirror)]
    for operator in [*list_operators([*step.arguments.values()]), *bare]:
        # A dataflow is planned by itself: rows cannot be handed over inside an application that it doesn't know.
        if isinstance(operator, StepMirror) and operator.flow.group_id != step.flow.group_id:
            raise step.make_error(
                f"takes the rows of {operator.task_id!r}, a step of dataflow {operator.flow.group_id!r}: write "
                "them to a Table there (writes=Table(...)) and read it here"
            )
        step.set_upstream(operator)


class SparkStepFactory(_TaskDecorator[..., Any, Any]):
    """What ``@task.spark_step`` makes of a function; each call is one step."""

    def __attrs_post_init__(self) -> None:
        """As Airflow's, without an argument of ours that it would take for its own."""
        # For the step to refuse: Airflow would meet it twice, as a field and among the arguments.
        self.multiple_outputs = self.kwargs.pop("multiple_outputs", False)
        super().__attrs_post_init__()

    def expand(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused, as ``partial``: how many there would be is known in a run only, and no plan is made for that."""
        _refuse_mapping(str(self.kwargs.get("task_id", self.function.__name__)))

    expand_kwargs = expand
    partial = expand


def spark_step(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """``@task.spark_step`` with or without arguments (see :class:`Declared` for what they may be)."""

    def decorate(function: Callable[..., Any]) -> SparkStepFactory:
        return SparkStepFactory(
            function=function, operator_class=PythonStep, multiple_outputs=False, kwargs=dict(kwargs)
        )

    if python_callable is None:
        return decorate
    if not callable(python_callable):
        raise TypeError("no positional arguments: write @task.spark_step(memory='1g')")
    return decorate(python_callable)


def _refuse_mapping(task_id: str) -> NoReturn:
    dag = DagContext.get_current()
    # There is no step to ask for its id: it is refused before one is made.
    group = TaskGroupContext.get_current(dag) if dag else None
    step = f"step {(group.child_id(task_id) if group else task_id)!r}"
    where = f"DAG {dag.dag_id!r}, {step}" if dag else step
    raise InvalidInput(where, "expand", "mapped steps cannot be shown: write a loop with .override(task_id=...)")


__all__ = ["PythonStep", "SparkSqlStep", "StepMirror", "spark_step"]
