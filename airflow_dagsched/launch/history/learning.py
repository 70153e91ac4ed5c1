"""What a run teaches: the history after it, from the history before it and what its applications measured.

Medians of the last runs: one slow run, or the first one, which finds no page in memory, changes no plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from msgspec import Struct, field
from msgspec.structs import replace

from airflow_dagsched.launch.history.attribute_durations import Turn, compute_alone_s, list_turns
from airflow_dagsched.launch.protocol.events import ColumnsRead, StepDone
from airflow_dagsched.model.state import Connection, KeptColumns, Measured, MeasuredOutput, ReadColumns, State
from airflow_dagsched.model.units import MIB

RECENT = 5
"""Runs that are remembered."""
NOTHING_S = 0.001
"""Runtime of a step that ran inside another one's job: next to nothing, but measured (0: not declared)."""
LARGE = 16 * 2**20
"""Bytes from which on a dataset's write says something about the bandwidth."""


class Ran(Struct, frozen=True):
    """One application that ended well."""

    seconds: float
    """From its submit to its end."""
    cores: int
    ends: tuple[StepDone, ...]
    """Of its steps, in topological order."""
    begun: Mapping[str, float]
    """Seconds from the submit until the step was called."""
    wanted: Mapping[str, int] = field(default_factory=dict)
    """Cores that a step's instances want together."""
    warm: bool = False
    """Whether it went on in an application that was there."""
    memory_mb: Mapping[str, int] = field(default_factory=dict)
    """What an instance of a step had, where it had run out with less."""
    codes: Mapping[str, str] = field(default_factory=dict)
    """Step -> digest of the code that says which columns of its outputs are read."""
    columns_read: tuple[ColumnsRead, ...] = ()
    """What was read of what was stored, each time it was told."""


def update_history(known: State, connection: str, applications: Iterable[Ran], run: str = "") -> State:
    """``known`` after these applications, all submitted over ``connection``, in the run of that id."""
    state = known
    for ran in applications:
        state = learn_columns(_learn_application(state, connection, ran), ran.columns_read, ran.codes, run)
    if state is known or not run:
        return state
    return replace(state, runs=(*(one for one in known.runs if one != run), run)[-RECENT:])


def _learn_application(known: State, connection: str, ran: Ran) -> State:
    found = list_turns(ran.ends, ran.begun, ran.wanted)
    alone = compute_alone_s(found, max(1, ran.cores))
    before = known.connections.get(connection, Connection())
    seen = _measure_connection(before, ran, found) if found else before
    fresh = {
        done.step: _update_measured(known.measured.get(done.step, Measured()), done, alone, ran)
        for done in ran.ends
        # Those that were skipped, reused or failed teach nothing.
        if done.state == "success" and done.seconds is not None
    }
    return replace(known, measured={**known.measured, **fresh}, connections={**known.connections, connection: seen})


def learn_columns(
    known: State,
    told: Iterable[ColumnsRead],
    codes: Mapping[str, str],
    run: str = "",
) -> State:
    """``known`` with what was read of stored datasets in ``run``, together with what the same code read before."""
    measured = dict(known.measured)
    for dataset, readers, where in _list_reads(told):
        step, _, name = dataset.partition("/")
        seen = measured.get(step, Measured())
        output = seen.outputs.get(name, MeasuredOutput())
        fresh = {
            reader: _add_read(
                output.read.get(reader),
                ReadColumns(columns=columns, code=codes.get(step, ""), where=where.get(reader, ()), run=run),
            )
            for reader, columns in readers.items()
        }
        outputs = {**seen.outputs, name: replace(output, read={**output.read, **fresh})}
        measured[step] = replace(seen, outputs=outputs)
    return known if measured == known.measured else replace(known, measured=measured)


def _list_reads(
    told: Iterable[ColumnsRead],
) -> Iterator[tuple[str, Mapping[str, tuple[str, ...] | None], Mapping[str, tuple[str, ...]]]]:
    """``step/output``; reader -> columns; reader -> what it asks of rows."""
    for each in told:
        yield from ((dataset, readers, each.where.get(dataset, {})) for dataset, readers in each.read.items())


def _add_read(before: ReadColumns | None, now: ReadColumns) -> ReadColumns:
    # What the same code has read once it may read again: a run of another day may take another way through it.
    same = before if before is not None and before.code == now.code else ReadColumns(columns=(), code=now.code)
    both = None if now.columns is None or same.columns is None else tuple(sorted({*now.columns, *same.columns}))
    if same.where is None:
        return replace(now, columns=both)
    shared = tuple(sorted({*same.where} & {*(now.where or ())}))
    return replace(now, columns=both, where=shared, run=same.run if same.run == now.run else "")


def _measure_connection(before: Connection, ran: Ran, found: tuple[Turn, ...]) -> Connection:
    # From the first call to the last end; what is left of the application's time are its start and its end.
    work = max(turn.end_s for turn in found) - min(turn.begin_s for turn in found)
    start = round(max(0.0, ran.seconds - work), 3)
    rates = [rate for done in ran.ends if (rate := _compute_rate(done)) is not None]
    # Never less than before: a step computes while it writes, so each rate is only a lower bound of the bandwidth.
    fastest = max([*rates, before.spill_mb_s or 0.0])
    seen = replace(before, spill_mb_s=fastest or None)
    # Each kind by itself: a mean of both would be true of none.
    if ran.warm:
        warm = (*before.recent_warm_s, start)[-RECENT:]
        return replace(seen, warm_start_s=round(median(warm), 3), recent_warm_s=warm)
    cold = (*before.recent_start_s, start)[-RECENT:]
    return replace(seen, application_start_s=round(median(cold), 3), recent_start_s=cold)


def _compute_rate(done: StepDone) -> float | None:
    """MiB a second at which the step's dataset was made and written; None where there is little to tell by."""
    if not done.datasets or done.bytes is None or done.bytes < LARGE or not done.seconds or done.state != "success":
        return None
    return round(done.bytes / MIB / done.seconds, 3)


def _update_measured(before: Measured, done: StepDone, alone: Mapping[str, float], ran: Ran) -> Measured:
    runtimes = (*before.recent_s, round(max(NOTHING_S, alone.get(done.step, 0.0)), 3))[-RECENT:]
    sizes = (*before.recent_bytes, *([] if done.bytes is None else [done.bytes]))[-RECENT:]
    # Never less than before: that one run came by with less proves nothing of the next.
    memory = max(before.memory_mb or 0, ran.memory_mb.get(done.step, 0))
    return Measured(
        runtime_s=round(median(runtimes), 3),
        memory_mb=memory or None,
        bytes=int(median(sizes)) if sizes else None,
        recent_s=runtimes,
        recent_bytes=sizes,
        outputs=_update_outputs(before.outputs, done, ran.codes.get(done.step, "")),
    )


def _update_outputs(before: Mapping[str, MeasuredOutput], done: StepDone, code: str) -> dict[str, MeasuredOutput]:
    """Each output by itself: those that this run neither stored nor counted stay as they are."""
    outputs = dict(before)
    for name, rows_by_width in done.assumed.items():
        outputs[name] = replace(outputs.get(name, MeasuredOutput()), assumed_bytes=rows_by_width)
    for name, size in done.sizes.items():
        known = outputs.get(name, MeasuredOutput())
        sizes = (*known.recent_bytes, size)[-RECENT:]
        outputs[name] = replace(known, bytes=int(median(sizes)), recent_bytes=sizes)
    for name in {*done.assumed, *done.sizes}:
        outputs[name] = _update_columns(outputs[name], name, done, code)
    return outputs


def _update_columns(known: MeasuredOutput, name: str, done: StepDone, code: str) -> MeasuredOutput:
    left_out, rows = done.left_out.get(name), _count_rows(done, name)
    row_bytes = done.sizes[name] / rows if rows and name in done.sizes else None
    if left_out is None:
        return replace(known, columns=None, row_bytes=known.row_bytes if row_bytes is None else round(row_bytes, 3))
    is_measured = row_bytes is not None and bool(known.row_bytes)
    share = row_bytes / known.row_bytes if row_bytes is not None and known.row_bytes else left_out.share
    kept = KeptColumns(
        columns=left_out.columns,
        kept=max(1, left_out.kept),
        share=min(1.0, round(share, 4)),
        measured=is_measured,
        code=code,
        where=left_out.where,
    )
    return replace(known, columns=kept)


def _count_rows(done: StepDone, name: str) -> float | None:
    """Rows of one output: of several each has a metric of its own."""
    return done.metrics.get(f"rows_{name}", done.rows if {*done.sizes, *done.assumed} == {name} else None)
