"""The dataflow: steps, the channels between them, and the ordinary Airflow tasks in between.

    extract ══> clean ══> route ──> (email) ──> archive        ══ channel   ── dependency   ( ) ordinary task

Sizes are per step instance, memory and disk in MiB, times in seconds, data in bytes.
Zero for memory, disk or runtime means "not declared", never "needs nothing".
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from airflow_dagsched.model.ranges import Bytes, Count, Declared, Id, MiB, Position, Positive, Quantity, Seconds

Scalar = str | int | float | bool | None

PLACEMENT = "dagsched.placement"
"""Among a step's ``application`` settings: the policy that places it, by name or dotted path of a class."""

DATAFLOW = "dagsched.dataflow"
"""Among a step's ``application`` settings, of several dataflows planned together: the one it is of."""

PINNED = "dagsched.pinned"
"""Among them, of a step of a DAG: the workers it is pinned to. Spark sends tasks to any executor of an application."""


class Block(Declared, frozen=True, kw_only=True):
    """A stored block of a partition and the hosts that hold a copy."""

    bytes: Bytes
    hosts: tuple[str, ...] = ()


class Partition(Declared, frozen=True, kw_only=True):
    """One partition of a source, named by its partition columns."""

    key: dict[str, Scalar] = {}
    bucket: Position | None = None
    """Of a bucketed source: the one bucket this is; None: not known, or all."""
    bytes: Bytes = 0
    blocks: tuple[Block, ...] = ()


class Buckets(Declared, frozen=True, kw_only=True):
    """How Spark spread a table's rows over files: by the hash of one column."""

    column: Id
    count: Count
    type: Literal["int", "bigint", "string", "date"]
    """Of the column: the hash depends on it."""


class Source(Declared, frozen=True, kw_only=True):
    """A table a step reads from outside the dataflow."""

    path: str
    where: str | None = None
    """The partitions the step reads, as a condition on their columns: ``day = interval.start``."""
    buckets: Buckets | None = None
    partitions: tuple[Partition, ...] = ()
    """All there are; none: not listed."""


class Step(Declared, frozen=True, kw_only=True):
    """One unit of the author's work."""

    id: Id
    parallelism: Annotated[int, Meta(ge=1, le=100_000)] = 1
    cores: Count = 1
    memory_mb: MiB = 0
    disk_mb: MiB = 0
    runtime_s: Seconds = 0.0
    mode: Literal["batch", "streaming"] = "batch"
    stateful: bool = False
    state_mb: MiB = 0
    rate_rows_s: Quantity = 0.0
    window_s: Seconds | None = None
    lateness_s: Seconds = 0.0
    weight: Positive = 1.0
    works_without_input: bool = True
    needs: Literal["all", "any"] = "all"
    repeat: bool = False
    isolate: bool = False
    application: dict[str, Scalar] = {}
    """Settings that must be equal within one Spark application."""
    pool: str = ""
    """Airflow pool of its launch task: equal within one application; empty: the dataflow's."""
    pinned: tuple[Id, ...] = ()
    """Ids of the only workers its instances may be on; empty: any."""
    sources: tuple[Source, ...] = ()
    writes: tuple[str, ...] = ()
    """Paths of the tables it writes, as ``Source.path`` has them."""
    order: Position = 0
    """Position in the author's file; decides which step of a group is the first."""


class Channel(Declared, frozen=True, kw_only=True):
    """Rows of dataset ``(src, output)`` go to step ``dst``."""

    src: Id
    dst: Id
    output: str = ""
    kind: Literal["pipelined", "buffered"] = "pipelined"
    bytes: Bytes = 0
    routing: Literal["forward", "shuffle", "broadcast", "single"] = "shuffle"


class Task(Declared, frozen=True, kw_only=True):
    """An ordinary Airflow task that stands between steps."""

    id: Id
    runtime_s: Seconds = 0.0


class Dataflow(Declared, frozen=True, kw_only=True):
    """The graph of steps, channels and ordinary tasks. The order of its arrays means nothing."""

    version: Literal[1] = 1
    name: str
    steps: tuple[Step, ...] = ()
    channels: tuple[Channel, ...] = ()
    tasks: tuple[Task, ...] = ()
    dependencies: tuple[tuple[Id, Id], ...] = ()
    """Edges ``(from, to)`` that carry no rows, between any steps and tasks."""
