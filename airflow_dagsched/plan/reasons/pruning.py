"""Why a group leaves something out, or why what was looked at stays."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.dataflow import Scalar


class NotUnderstood(Struct, frozen=True):
    """A condition that is no comparison of columns."""

    condition: str


class ComparesWithNull(Struct, frozen=True):
    """A comparison that is true for no row, whatever the partition."""

    condition: str


class ColumnMissing(Struct, frozen=True):
    """Some partitions say nothing of the column."""

    column: str


class ColumnNull(Struct, frozen=True):
    """The column is null in some partition."""

    column: str


class ValueUnreadable(Struct, frozen=True):
    """Spark may read the value of a partition otherwise than is known here."""

    comparison: str
    column: str
    value: Scalar


class ListingRefused(Struct, frozen=True):
    """Nobody listed the source; in the words of whoever was to."""

    why: str


ConditionObjection = NotUnderstood | ComparesWithNull | ColumnMissing | ColumnNull | ValueUnreadable
"""Why a condition leaves nothing out of partitions that are known."""
SourceObjection = ConditionObjection | ListingRefused | Literal["not listed"]
"""Why nothing is left out of a source."""


class SourceWithoutMatch(Struct, frozen=True):
    """No partition of the source at this path may match."""

    path: str
    condition: str


class DatasetWithoutRows(Struct, frozen=True):
    """A dataset of an earlier group, which is committed."""

    name: str


class IdleWriter(Struct, frozen=True):
    """The step that writes an input has nothing to do."""

    step: str


EmptyInput = SourceWithoutMatch | DatasetWithoutRows | IdleWriter


class NoInput(Struct, frozen=True):
    """Why a step that does no work without input has none."""

    inputs: tuple[EmptyInput, ...]


class NoReader(Struct, frozen=True):
    """A step leaves nothing but rows, and all steps that read them have nothing to do."""

    readers: tuple[str, ...]


IdleReason = NoInput | NoReader


class NoMatch(Struct, frozen=True):
    """The condition is false for all rows of the partition."""

    condition: str


class TooManyInstances(Struct, frozen=True):
    """There are rows for fewer instances than the step has."""

    useful: int


class NoRowsOnWorker(Struct, frozen=True):
    """No rows come to the worker on which the instance was placed."""

    worker: str


class HeldElsewhere(Struct, frozen=True):
    """Other workers hold all that the group needs."""

    workers: tuple[str, ...]


class MakesRows(Struct, frozen=True):
    """The step reads nothing, so that any worker will do."""

    step: str


class HolderUnknown(Struct, frozen=True):
    """Where the dataset is stored is not known."""

    dataset: str


class SourceUnknown(Struct, frozen=True):
    """What the step reads of the source is not known."""

    path: str
    step: str
    objection: SourceObjection


class ConditionMissing(Struct, frozen=True):
    """No condition says what the step needs of the source, and only conditions count."""

    path: str
    step: str


class WorksAnywhere(Struct, frozen=True):
    """The step works without input, so that it may be on any worker."""

    step: str


class Broadcast(Struct, frozen=True):
    """Rows that go to all workers."""

    src: str
    dst: str


class NoRoomForStep(Struct, frozen=True):
    """No worker that holds the data has room for an instance of the step."""

    step: str


class NoRoomForGroup(Struct, frozen=True):
    """The group does not fit on the workers that hold the data."""

    refusal: DoesNotFit


class SoonerElsewhere(Struct, frozen=True):
    """On the fewest workers that hold the data the run ends later, or holds its cores for longer."""

    held_s: float
    """Makespan on these."""
    held_core_seconds: float
    whole_s: float
    """Makespan with all workers."""
    whole_core_seconds: float


WorkerObjection = (
    MakesRows
    | HolderUnknown
    | SourceUnknown
    | ConditionMissing
    | WorksAnywhere
    | Broadcast
    | NoRoomForStep
    | NoRoomForGroup
    | SoonerElsewhere
    | Literal["no partition needed", "holders unknown", "holder gone"]
)
"""Why a group may need any worker."""
PrunedReason = NoMatch | TooManyInstances | NoRowsOnWorker | HeldElsewhere | Literal["worker idle"]
"""Why a partition, an instance or a worker is left out; of steps see ``IdleReason``."""
WholeReason = Literal["switched off", "streaming"]
"""Why a group leaves nothing out."""
