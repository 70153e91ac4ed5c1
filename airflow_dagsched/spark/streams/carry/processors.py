"""What a step's processor declares, and how it is given what it begins with.

A step that carries says so in its declaration alone: while its function is called, ``transformWithState`` is given the
initial state. The processor's ``handleInitialState`` takes it over.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from pyspark.sql import GroupedData
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from airflow_dagsched.spark.session.current import CURRENT
from airflow_dagsched.spark.streams.carry.shapes import Kind, Mismatch, StateShape

_HOOKED = ("transformWithState", "transformWithStateInPandas")


@dataclass(slots=True)
class Carrying:
    """One call of a step's function."""

    initial: GroupedData | None
    """What its state begins with; None: nothing was carried."""
    processors: list[StatefulProcessor] = field(default_factory=list)
    step: str = ""
    """In whose function ``transformWithState`` was called last."""

    def judge(self) -> tuple[Mismatch, ...]:
        """What is wrong with what the step called."""
        if len(self.processors) != 1:
            return (Mismatch("several" if self.processors else "none"),)
        takes = type(self.processors[0]).handleInitialState is not StatefulProcessor.handleInitialState
        return () if takes else (Mismatch("not taken"),)

    def list_shapes(self) -> dict[str, StateShape]:
        """The states that the processors declare, by name."""
        return {name: shape for processor in self.processors for name, shape in list_declared(processor).items()}


_CARRYING: ContextVar[Carrying | None] = ContextVar("carrying", default=None)


@contextmanager
def carry_into(initial: GroupedData | None) -> Iterator[Carrying]:
    """While the function of a step that carries is called: it begins with ``initial``."""
    _hook_transform()
    token = _CARRYING.set(Carrying(initial))
    try:
        carrying = _CARRYING.get()
        assert carrying is not None
        yield carrying
    finally:
        _CARRYING.reset(token)


def list_declared(processor: StatefulProcessor) -> dict[str, StateShape]:
    """States that ``init`` asks for. It is asked of a copy: the processor itself has been handed to Spark."""
    handle = _DeclaringHandle()
    copy.copy(processor).init(handle)  # type: ignore[arg-type]
    return handle.declared


class _DeclaringHandle:
    """As much of Spark's ``StatefulProcessorHandle`` as ``init`` may use. Names of arguments are Spark's."""

    def __init__(self) -> None:
        self.declared: dict[str, StateShape] = {}

    def getValueState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        schema: StructType | str,
        ttlDurationMs: int | None = None,  # noqa: N803
    ) -> None:
        self._declare(stateName, "value", schema, ttlDurationMs)

    def getListState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        schema: StructType | str,
        ttlDurationMs: int | None = None,  # noqa: N803
    ) -> None:
        self._declare(stateName, "list", schema, ttlDurationMs)

    def getMapState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        userKeySchema: StructType | str,  # noqa: N803
        valueSchema: StructType | str,  # noqa: N803
        ttlDurationMs: int | None = None,  # noqa: N803
    ) -> None:
        self._declare(stateName, "map", valueSchema, ttlDurationMs, tell_type(userKeySchema))

    def _declare(self, name: str, kind: Kind, schema: StructType | str, ttl: int | None, keys: str = "") -> None:
        self.declared[name] = StateShape(name, kind, tell_type(schema), keys, expires=ttl is not None)


def tell_type(schema: StructType | str) -> str:
    """In Spark's words, without what may be null."""
    return (StructType.fromDDL(schema) if isinstance(schema, str) else schema).simpleString()


def _hook_transform() -> None:
    """Let ``transformWithState`` ask what it begins with, once and for all."""
    for name in _HOOKED:
        original = getattr(GroupedData, name)
        # ``wraps`` leaves this mark.
        if not hasattr(original, "__wrapped__"):
            setattr(GroupedData, name, _let_ask(original))


def _let_ask(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def transform(grouped: GroupedData, statefulProcessor: StatefulProcessor, *args: Any, **words: Any) -> Any:  # noqa: N803
        carrying = _CARRYING.get()
        if carrying is not None:
            carrying.processors.append(statefulProcessor)
            carrying.step = CURRENT.step or ""
            if carrying.initial is not None:
                words["initialState"] = carrying.initial
        return original(grouped, statefulProcessor, *args, **words)

    return transform
