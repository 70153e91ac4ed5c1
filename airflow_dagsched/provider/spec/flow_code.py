"""What says which columns of a step's rows are read: the code of all steps above it, of its own, of all below it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.xcom_arg import XComArg

from airflow_dagsched.launch.steps.code import read_code
from airflow_dagsched.model.state import State, forget_other_code
from airflow_dagsched.provider.spec.call_arguments import list_operators, transform_leaves
from airflow_dagsched.provider.spec.run_history import locate_history, recall_history

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import AuthoredStep, DataflowSpec


def digest_ways(flow: DataflowSpec) -> dict[str, str]:
    """Step -> digest of that code, the same in each run. A change that it does not see costs time, never rows."""
    mine = {name: _read_step(step) for name, step in flow.steps.items()}
    above: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {name: set() for name in mine}
    for name in flow.graph.sort_steps():
        direct = {output.step for output in flow.graph.inputs.get(name, ())}
        above[name] = direct.union(*(above.get(up, ()) for up in direct))
        for up in above[name]:
            below[up].add(name)
    return {name: _join({name, *above[name], *below[name]}, mine) for name in mine}


def recall_same_code(flow: DataflowSpec, history: Path | None, ways: Mapping[str, str]) -> State:
    """What the history says, of columns only what runs of the same code have taught.

    :param history: file of the history; None: the dataflow's.
    :param ways: of ``digest_ways``.
    """
    return forget_other_code(recall_history(history or locate_history(flow)), ways)


def _join(steps: set[str], codes: Mapping[str, str]) -> str:
    return sha256("\0".join(f"{name}:{codes[name]}" for name in sorted(steps)).encode()).hexdigest()


def _read_step(step: AuthoredStep) -> str:
    """Before anything is rendered: a run of another day is of the same code."""
    arguments = {name: transform_leaves(value, _name_value) for name, value in step.arguments.items()}
    settings = {name: str(value) for name, value in step.declared.application.items()}
    return read_code(step.function or step.sql, [arguments, settings], tuple(_list_roots(step.function))).fingerprint


def _name_value(leaf: Any) -> Any:
    """The return value of an ordinary task by its name: what it is, a run knows."""
    return [operator.task_id for operator in list_operators(leaf)] if isinstance(leaf, XComArg) else leaf


def _list_roots(function: Callable[..., Any] | None) -> Iterator[Path]:
    """Folders whose modules are the author's: that of the function's file, and those of Python's path above it."""
    code = getattr(unwrap(function), "__code__", None) if function is not None else None
    if code is None:
        return
    file = Path(code.co_filename).resolve()
    yield file.parent
    for path in (Path(entry).resolve() for entry in sys.path if Path(entry).is_absolute()):
        if file.is_relative_to(path) and path != Path(path.anchor):
            yield path
