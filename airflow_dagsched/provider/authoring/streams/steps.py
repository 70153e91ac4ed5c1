"""Steps that a stream alone has: ``@task.spark_stream_source`` and ``@task.spark_stream_sink``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_dagsched.launch.protocol.calls import Handed
from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.provider.authoring.steps import PythonStep, SparkStepFactory
from airflow_dagsched.provider.authoring.streams.sources import DeclaredSource, find_source_mistake
from airflow_dagsched.provider.spec.call_arguments import CONTEXT_NAMES

OF_SOURCES = tuple(DeclaredSource.__dataclass_fields__)
KEY = "key"
"""Parameter of a sink's function."""


class SourceStep(PythonStep):
    """A function that gets the rows of a source as they are, and returns those of the stream."""

    custom_operator_name = "@task.spark_stream_source"
    shallow_copy_attrs = (*PythonStep.shallow_copy_attrs, "source")

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Sequence[Any] = (),
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.source = DeclaredSource(**{name: kwargs.pop(name) for name in OF_SOURCES if name in kwargs})
        given = dict(op_kwargs or {})
        rows = next((name for name in inspect.signature(python_callable).parameters if name not in CONTEXT_NAMES), None)
        handed = {rows: Handed("rows")} if rows is not None and rows not in given and not op_args else {}
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs={**given, **handed}, **kwargs)
        if not handed:
            raise self.make_error(
                "its first parameter gets the rows of the source: write def "
                f"{python_callable.__name__}(rows, ...), and give others by name where it is called"
            )
        self._check_source()

    def _check_source(self) -> None:
        if self.flow.declared.streaming is None:
            raise self.make_error("a source without end needs SparkDataflow(..., mode='streaming')")
        if self.declared.writes is not None:
            raise self.make_error("a source writes nothing: let a step below it write", "writes")
        mistake = find_source_mistake(self.flow.step_id(self.task_id), self.source)
        if mistake is not None:
            raise self.make_error(mistake[1], mistake[0])

    def make_spec(self, name: str) -> SourceSpec:
        """What a driver needs of it.

        :param name: of the step inside the dataflow.
        """
        source = self.source
        options = {option: str(value) for option, value in source.options.items()}
        return SourceSpec(
            name, source.format, source.event_time, source.path, source.schema, options, start=source.start
        )


class SinkStep(PythonStep):
    """A function that puts rows where no table is: at least once, and with its ``key`` exactly once."""

    custom_operator_name = "@task.spark_stream_sink"

    def __init__(
        self, *, python_callable: Callable[..., Any], op_kwargs: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        given = dict(op_kwargs or {})
        takes_key = KEY in inspect.signature(python_callable).parameters and KEY not in given
        handed = {KEY: Handed("key")} if takes_key else {}
        super().__init__(python_callable=python_callable, op_kwargs={**given, **handed}, **kwargs)
        if not takes_key:
            name = python_callable.__name__
            raise self.make_error(f"a repeated batch is known by its key: write def {name}(rows, key), and pass rows")
        if self.flow.declared.streaming is None:
            raise self.make_error("a sink of batches needs SparkDataflow(..., mode='streaming')")
        if self.declared.writes is not None:
            raise self.make_error("its function writes: a table is written by @task.spark_step(writes=...)", "writes")


def spark_stream_source(
    python_callable: Callable[..., Any] | None = None,
    *,
    format: Any = None,  # noqa: A002 - Spark's word
    event_time: Any = None,
    **kwargs: Any,
) -> Any:
    """``@task.spark_stream_source(format=, event_time=, ...)``: where rows come from, declared, not opened.

    :param format: of files, or ``rate-micro-batch``, ``kafka``, ``delta``, ``iceberg``.
    :param event_time: column of what the function returns that has the time of a row.
    :param kwargs: ``path`` and ``schema`` of files, ``options`` of the format, ``start``, an offset to begin at; and
        what ``@task.spark_step`` takes.
    """
    return _decorate(python_callable, SourceStep, {"format": format, "event_time": event_time, **kwargs})


def spark_stream_sink(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """``@task.spark_stream_sink``: a function of rows and a key that is called with each batch."""
    return _decorate(python_callable, SinkStep, kwargs)


def _decorate(function: Callable[..., Any] | None, kind: type[PythonStep], kwargs: Mapping[str, Any]) -> Any:
    def decorate(inner: Callable[..., Any]) -> SparkStepFactory:
        return SparkStepFactory(function=inner, operator_class=kind, multiple_outputs=False, kwargs=dict(kwargs))

    return decorate if function is None else decorate(function)
