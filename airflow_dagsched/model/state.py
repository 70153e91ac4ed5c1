"""What is known of earlier and running work: lags, finished groups, measured sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.model.ranges import (
    Bytes,
    Count,
    Declared,
    Id,
    MiB,
    Position,
    Positive,
    Quantity,
    Seconds,
    Share,
    Value,
)


class Assignment(Value, frozen=True, kw_only=True):
    """Which worker has each step instance ``step/index`` active, on standby, warming up."""

    active: dict[str, Id] = {}
    standby: dict[str, tuple[Id, ...]] = {}
    warmup: dict[str, tuple[Id, ...]] = {}
    moved: dict[str, Id] = {}
    """Instances handed over since the workers last changed, with a digest of these workers: they stay."""


class Movement(Value, frozen=True, kw_only=True, rename={"from_worker": "from", "to_worker": "to"}):
    """An instance that changes its worker: the fields ``from`` and ``to`` of the file."""

    instance: Id
    from_worker: Id
    to_worker: Id
    lag: Quantity | None = None
    reason: str


class Lag(Declared, frozen=True, kw_only=True):
    """How far a worker's copy of an instance's state is behind; None: unknown."""

    instance: Id
    worker: Id
    rows: Position | None = None
    bytes: Bytes | None = None
    seconds: Quantity | None = None
    running: bool = False


class KeptColumns(Declared, frozen=True, kw_only=True):
    """Of a dataset that was kept, or stored, without the columns that nobody reads."""

    columns: Count
    """All there are."""
    kept: Count
    share: Share
    """Of the bytes of all."""
    measured: bool = False
    """Whether ``share`` is of bytes that were stored; else it is by the types of the columns."""
    code: str = ""
    """Digest of the code that said which: of what makes the dataset, and of all that is made of it."""
    where: tuple[str, ...] = ()
    """What the rows fulfil that were stored, as SQL; all were where nothing is asked of them."""


class ReadColumns(Declared, frozen=True, kw_only=True):
    """What a step has read of a dataset that was stored, in all runs of the same code."""

    columns: tuple[str, ...] | None = None
    """None: all."""
    code: str = ""
    """As of ``KeptColumns``."""
    where: tuple[str, ...] | None = None
    """What it has asked of each row in all of them, as SQL; None: not known."""
    run: Id | Literal[""] = ""
    """The one that this is known of; empty: there were several. What is asked of rows may be of a run's own day."""


class MeasuredOutput(Declared, frozen=True, kw_only=True):
    """One output of a step; None: never stored, never counted."""

    bytes: Bytes | None = None
    """As it was stored, in the median of the last runs that did."""
    recent_bytes: tuple[Bytes, ...] = ()
    assumed_bytes: Bytes | None = None
    """Rows times the width of a row, of the last run that counted them and stored nothing."""
    columns: KeptColumns | None = None
    """As the last run that made it kept it; None: with all its columns."""
    row_bytes: Quantity | None = None
    """Of a row with all its columns, as it was last stored."""
    read: dict[Id, ReadColumns] = {}
    """By step."""


class Measured(Declared, frozen=True, kw_only=True):
    """What a step takes, by its last runs; None: not measured."""

    runtime_s: Seconds | None = None
    """Of one instance, if it had its cores for itself."""
    memory_mb: MiB | None = None
    bytes: Bytes | None = None
    """Of all its outputs together."""
    recent_s: tuple[Seconds, ...] = ()
    """The runtimes of the last runs, of which ``runtime_s`` is the median; the newest last."""
    recent_bytes: tuple[Bytes, ...] = ()
    outputs: dict[str, MeasuredOutput] = {}
    stored: dict[str, Bytes] = {}
    """What the run holds of its outputs now: a fact, where all else foretells."""


class Connection(Declared, frozen=True, kw_only=True):
    """What applications take that are submitted over one connection; None: not measured."""

    application_start_s: Seconds | None = None
    """All that is no work of a step: until the first one is called, and after the last has ended."""
    spill_mb_s: Positive | None = None
    """MiB a second, at least: at which a step was seen to compute and write its rows."""
    recent_start_s: tuple[Seconds, ...] = ()
    """Of the last applications, of which ``application_start_s`` is the median; the newest last."""
    warm_start_s: Seconds | None = None
    """As ``application_start_s``, of groups that went on in an application that was warm."""
    recent_warm_s: tuple[Seconds, ...] = ()
    """As ``recent_start_s``, of those."""


class State(Declared, frozen=True, kw_only=True):
    """What a plan may take into account besides dataflow and cluster."""

    version: Literal[1] = 1
    lags: tuple[Lag, ...] = ()
    offsets: dict[str, Position] = {}
    previous: Assignment | None = None
    finished: tuple[Id, ...] = ()
    """Groups, and ordinary tasks."""
    running: tuple[Id, ...] = ()
    elapsed_s: dict[str, Seconds] = {}
    """How long each running group has been running; 0 where it is not said."""
    measured: dict[str, Measured] = {}
    connections: dict[str, Connection] = {}
    runs: tuple[Id, ...] = ()
    """The last runs that something was measured in; the newest last."""


def forget_other_code(state: State, codes: Mapping[str, str]) -> State:
    """The state without what runs of other code have said of columns; ``codes``: step -> digest of its code now."""
    measured = {name: _forget_columns(seen, codes.get(name, "")) for name, seen in state.measured.items()}
    return replace(state, measured=measured)


def _forget_columns(seen: Measured, code: str) -> Measured:
    outputs = {name: _forget_output(one, code) for name, one in seen.outputs.items()}
    return seen if outputs == seen.outputs else replace(seen, outputs=outputs)


def _forget_output(one: MeasuredOutput, code: str) -> MeasuredOutput:
    kept = one.columns if one.columns is not None and one.columns.code == code else None
    return replace(one, columns=kept, read={name: read for name, read in one.read.items() if read.code == code})


def list_strangers(state: State, dataflow: Dataflow) -> tuple[str, ...]:
    """What ``state`` knows of that ``dataflow`` has not: steps that were measured, instances that lag."""
    width = {step.id: step.parallelism for step in dataflow.steps}
    steps = {f"step {name!r}" for name in state.measured.keys() - width.keys()}
    behind = {lag.instance for lag in state.lags if not _is_instance(lag.instance, width)}
    return tuple(sort_naturally(steps | {f"instance {name!r}" for name in behind}))


def _is_instance(name: str, width: Mapping[str, int]) -> bool:
    """Whether ``name`` is ``step/index`` with an index below the step's ``width``."""
    step, _, index = name.rpartition("/")
    return index.isdecimal() and int(index) < width.get(step, 0)


def apply_measured(dataflow: Dataflow, state: State) -> Dataflow:
    """The dataflow with measured values in place of estimates; steps never measured stay as they are.

    Memory is only ever raised: the author's word is a floor, since a lucky run proves no smaller need.
    Bytes are what the run holds, else the author's word, else as stored before, else rows times width.
    """
    outputs: dict[str, set[str]] = {}
    for channel in dataflow.channels:
        outputs.setdefault(channel.src, set()).add(channel.output)
    single = {src for src, names in outputs.items() if len(names) == 1}
    return replace(
        dataflow,
        steps=tuple(_apply_to_step(step, state.measured.get(step.id)) for step in dataflow.steps),
        channels=tuple(
            _apply_to_channel(channel, state.measured.get(channel.src), alone=channel.src in single)
            for channel in dataflow.channels
        ),
    )


def apply_connection(cluster: Cluster, state: State, name: str | None = None) -> Cluster:
    """The cluster with what was measured over connection ``name``; None: over the only one there is.

    Its bandwidth is only ever raised: a step computes while it writes.
    """
    seen = state.connections.get(name) if name is not None else _take_only(state.connections)
    if seen is None:
        return cluster
    start = cluster.application_start_s if seen.application_start_s is None else seen.application_start_s
    warm = cluster.warm_start_s if seen.warm_start_s is None else seen.warm_start_s
    rate = max(cluster.spill_mb_s, seen.spill_mb_s or 0.0)
    return replace(cluster, application_start_s=start, warm_start_s=warm, spill_mb_s=rate)


def expect_warm(cluster: Cluster) -> Cluster:
    """The cluster where each group finds an application that is warm: a start costs no more than that."""
    return replace(cluster, application_start_s=min(cluster.application_start_s, cluster.warm_start_s))


def _take_only(connections: dict[str, Connection]) -> Connection | None:
    return next(iter(connections.values())) if len(connections) == 1 else None


def _apply_to_step(step: Step, seen: Measured | None) -> Step:
    if seen is None:
        return step
    return replace(
        step,
        runtime_s=step.runtime_s if seen.runtime_s is None else seen.runtime_s,
        # The author's word is a floor: a lucky run proves no smaller need.
        memory_mb=max(step.memory_mb, seen.memory_mb or 0),
    )


def _apply_to_channel(channel: Channel, seen: Measured | None, *, alone: bool) -> Channel:
    """``alone``: whether it is of the only dataset of its step."""
    known = None if seen is None else _find_bytes(channel, seen, alone)
    return channel if known is None else replace(channel, bytes=known)


def _find_bytes(channel: Channel, seen: Measured, alone: bool) -> int | None:
    output = seen.outputs.get(channel.output, MeasuredOutput())
    # Of several datasets the shares are not known; an older history has no more than the sum.
    total = seen.bytes if alone else None
    foretold = (channel.bytes or None, output.bytes, total, output.assumed_bytes)
    return seen.stored.get(channel.output, next((size for size in foretold if size is not None), None))
