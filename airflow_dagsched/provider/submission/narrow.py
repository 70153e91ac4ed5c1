"""What of a stored dataset is worth storing: what was read of it when the same code last ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.model.state import Measured, MeasuredOutput, ReadColumns, State

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec


def choose_columns(flow: DataflowSpec, known: State) -> dict[str, dict[str, tuple[str, ...]]]:
    """Step -> output -> names of those columns; without outputs of which all are to be stored.

    :param known: what runs of the same code have taught, see ``forget_other_code``.
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for output, reads in _list_reads(flow, known):
        each = [read.columns for read in reads if read.columns is not None]
        if len(each) == len(reads):
            united = {name for columns in each for name in columns}
            found.setdefault(output.step, {})[output.name] = tuple(sorted(united))
    return found


def choose_rows(flow: DataflowSpec, known: State) -> dict[str, dict[str, tuple[str, ...]]]:
    """Step -> output -> what the rows fulfil, as SQL; without outputs of which all rows are to be stored.

    :param known: as of ``choose_columns``.
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for output, reads in _list_reads(flow, known):
        shared = set.intersection(*({*_list_lasting(read)} for read in reads))
        if shared:
            found.setdefault(output.step, {})[output.name] = tuple(sorted(shared))
    return found


def _list_lasting(read: ReadColumns) -> Iterable[str]:
    # What one run has asked may be of its day, as `day = '2024-01-01'`: the next one would have all made again.
    return (read.where or ()) if read.columns is not None and not read.run else ()


def _list_reads(flow: DataflowSpec, known: State) -> Iterator[tuple[Output, list[ReadColumns]]]:
    """Datasets that are for steps alone, with what each of their readers has read, if it is known of all of them."""
    if flow.keep_columns == "all":
        return
    readers: dict[Output, list[str]] = {}
    for name, inputs in flow.graph.inputs.items():
        for output in inputs:
            readers.setdefault(output, []).append(name)
    for output, names in readers.items():
        seen = known.measured.get(output.step, Measured()).outputs.get(output.name, MeasuredOutput())
        if _is_for_steps(flow, output, names) and all(name in seen.read for name in names):
            yield output, [seen.read[name] for name in names]


def _is_for_steps(flow: DataflowSpec, output: Output, readers: list[str]) -> bool:
    """Whether steps alone read it, each by one plan."""
    looped: Mapping[str, tuple[str, ...]] = flow.map_repeat_blocks()
    is_consumed = output.name in flow.graph.consumed.get(output.step, ())
    return not is_consumed and not any(name in looped for name in (output.step, *readers))
