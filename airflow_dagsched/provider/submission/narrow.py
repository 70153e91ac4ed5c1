"""Which columns of a stored dataset are worth storing: those that were read of it when the same code last ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.model.state import Measured, MeasuredOutput, State

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec


def choose_columns(flow: DataflowSpec, known: State) -> dict[str, dict[str, tuple[str, ...]]]:
    """Step -> output -> names of those columns; without outputs of which all are to be stored.

    :param known: what runs of the same code have taught, see ``forget_other_code``.
    """
    if flow.keep_columns == "all":
        return {}
    readers: dict[Output, list[str]] = {}
    for name, inputs in flow.graph.inputs.items():
        for output in inputs:
            readers.setdefault(output, []).append(name)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for output, names in readers.items():
        seen = known.measured.get(output.step, Measured()).outputs.get(output.name, MeasuredOutput())
        columns = _unite(seen, names) if _is_for_steps(flow, output, names) else None
        if columns is not None:
            found.setdefault(output.step, {})[output.name] = columns
    return found


def _unite(seen: MeasuredOutput, readers: list[str]) -> tuple[str, ...] | None:
    """What all of them read; None: all columns, or of one it is not known."""
    each = [seen.read[name].columns if name in seen.read else None for name in readers]
    known = [columns for columns in each if columns is not None]
    return tuple(sorted({name for columns in known for name in columns})) if len(known) == len(each) else None


def _is_for_steps(flow: DataflowSpec, output: Output, readers: list[str]) -> bool:
    """Whether steps alone read it, each by one plan."""
    looped: Mapping[str, tuple[str, ...]] = flow.map_repeat_blocks()
    is_consumed = output.name in flow.graph.consumed.get(output.step, ())
    return not is_consumed and not any(name in looped for name in (output.step, *readers))
