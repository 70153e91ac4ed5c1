"""The sink of a query: each batch is written aside, recorded in the flow's log, and only then delivered.

::

    draft written -- judged -- made smaller -- durable -- judged again, and recorded -- delivered -- Spark commits
                       ^ waits for its turn                  ^ the point at which it counts

A batch is judged as it gets its number in the log, by all records before it: what another epoch, or another driver of
this one, was faster with is known then. Spark repeats a batch that it has not committed itself: the repeat is executed,
for Spark counts the commits of its state, and delivers what the first try left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from airflow_dagsched.spark.files.clock import MACHINE, Clock
from airflow_dagsched.spark.files.store import Store
from airflow_dagsched.spark.outputs.commits import WriteRefused
from airflow_dagsched.spark.outputs.locks import FencedStore
from airflow_dagsched.spark.streams.draft_writer import Draft
from airflow_dagsched.spark.streams.drafts import DraftPlace, make_name
from airflow_dagsched.spark.streams.mover import finish_moves
from airflow_dagsched.switch.comparing.flow_comparison import must_summarise
from airflow_dagsched.switch.comparing.summary import Summaries
from airflow_dagsched.switch.comparing.summary_files import SummaryFiles
from airflow_dagsched.switch.drafts import DraftName
from airflow_dagsched.switch.judgement import Judgement, judge_batch
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import FlowPlaces
from airflow_dagsched.switch.records import Batch
from airflow_dagsched.switch.story import Story

log = logging.getLogger(__name__)

ANOTHER = (
    "the log has it with other rows, so the checkpoint is older than the log: it was removed, restored or lost. "
    "`airflow dagsched stream switch DAG --again` goes on from the log"
)
_LOOK_S = 0.5
"""Between two looks for a record that is waited for."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows of an epoch that one query has left out, and read, until now; see ``Batch.x_late`` and the next ones."""

    late: int = 0
    ahead: int = 0
    nulls: int = 0
    read: int = 0


@dataclass(frozen=True, slots=True)
class BatchBegin:
    """Where a batch began, as Spark wrote down before it ran it."""

    watermark: float
    """Seconds since 1970; 0: none yet."""
    offsets: Mapping[str, Any] = field(default_factory=dict)
    """Source -> offset; null: the start."""
    newest: Mapping[str, float | None] = field(default_factory=dict)
    """Source -> newest event time read before the batch; null: no row was; missing: unknown."""
    end: str = ""
    """See ``Batch.x_end``."""
    counts: RowCounts = RowCounts()


@dataclass
class StreamRefused(WriteRefused):
    """A batch does not count, and Spark may not commit it."""

    epoch: int
    query: str
    batch: int
    reason: str

    def __str__(self) -> str:
        return f"batch {self.batch} of {self.query!r} in epoch {self.epoch} is not taken: {self.reason}"


class Writer(Protocol):
    """Writes batches aside."""

    def write(self, df: DataFrame, folder: str) -> Draft:
        """Write the rows into a new draft."""
        ...

    def narrow(self, draft: Draft, judged: Judgement) -> Draft:
        """Keep only the rows of windows that count."""
        ...

    def condense(self, draft: Draft) -> Summaries:
        """What the draft has in each window."""
        ...

    def execute(self, df: DataFrame) -> None:
        """Run the batch, and keep nothing of it."""
        ...


class Target(Protocol):
    """Where a query's rows go."""

    @property
    def store(self) -> Store:
        """That its drafts are in."""
        ...

    @property
    def place(self) -> DraftPlace:
        """Where its drafts are."""
        ...

    @property
    def writer(self) -> Writer:
        """Of its drafts."""
        ...

    def prepare(self, draft: Draft) -> None:
        """Return when the draft would outlive a power cut, and nothing is known that keeps it from being delivered."""
        ...

    def deliver(self, store: FencedStore, draft: str, record: Batch, epoch: str) -> None:
        """Bring what the record says of the draft where it belongs; may be called again for one draft.

        :param epoch: name of the epoch's folder. Another log, or the same place's after all was removed, numbers its
            epochs and records alike.
        """
        ...


class StreamSink:
    """Takes the batches of one query, one after the other.

    :param log: read and written by this sink alone.
    :param read_begin: of a batch that runs.
    :param check: raises what is to end the query: the epoch's lease was lost, or the driver ends.
    :param note_read: called once a batch was executed, before it is recorded.
    :param prepared: batches that ran over nothing as the query's checkpoint was made: no sink had them.
    """

    def __init__(  # noqa: PLR0913 - each is a part of its own, by keyword
        self,
        *,
        log: FlowLog,
        epoch: int,
        query: str,
        target: Target,
        read_begin: Callable[[int], BatchBegin],
        check: Callable[[], None],
        note_read: Callable[[int, BatchBegin], None] = lambda batch, begin: None,
        prepared: int = 0,
        clock: Clock = MACHINE,
    ) -> None:
        self._log = log
        self._epoch = epoch
        self._query = query
        self._target = target
        self._read_begin = read_begin
        self._check = check
        self._note_read = note_read
        self._prepared = prepared
        self._clock = clock

    def take(self, df: DataFrame, batch: int) -> None:
        """What ``foreachBatch`` calls. Raises ``StreamRefused``, or as ``check``."""
        if self._has_record(batch):
            self._refuse_another(batch)
            self._target.writer.execute(df)
        else:
            self._record_prepared(batch)
            self._take_new(df, batch)
        self.finish()

    def finish(self) -> None:
        """Deliver what was recorded, by this driver or one that died."""
        self._log.read()
        finish_moves(self._target.store, self._target.place, self._log.story, self._target.deliver, self._clock)

    def _record_prepared(self, batch: int) -> None:
        """Record those before the query's first batch of rows: whoever reads the log counts from 0."""
        for each in range(min(batch, self._prepared)):
            if not self._has_record(each):
                name = make_name(self._epoch, self._query, each)
                self._record(name, Draft("", StructType()), self._read_begin(each))

    def _take_new(self, df: DataFrame, batch: int) -> None:
        name = make_name(self._epoch, self._query, batch)
        folder = self._target.place.name_folder(name)
        try:
            draft, begin = self._target.writer.write(df, folder), self._read_begin(batch)
            self._note_read(batch, begin)
            self._record(name, draft, begin)
        except Exception as error:
            # Looked for first: it may have been recorded for all the error.
            if not self._has_record(batch):
                self._target.store.delete(folder)
                raise
            if isinstance(error, WriteRefused):
                raise
            log.info(
                "batch %d of %s: another driver was faster, which removed this one's draft: %s", batch, folder, error
            )
            self._target.writer.execute(df)

    def _record(self, name: DraftName, draft: Draft, begin: BatchBegin) -> None:
        """Add the record of the batch, for what of it counts at that moment; nothing if another driver was faster."""
        whole = draft
        self._keep_summary(name.batch, whole)
        while True:
            judged = self._await_turn(name.batch, whole)
            if judged.kind == "repeated":
                self._refuse_another(name.batch)
                return
            if judged.kind == "part":
                draft = self._target.writer.narrow(draft, judged)
            if judged.kind in ("all", "part"):
                self._target.prepare(draft)
            kept = draft if judged.kind in ("all", "part") else None
            if self._log.append(self._make_record(name, judged, whole, kept, begin)) is not None:
                return

    def _keep_summary(self, batch: int, whole: Draft) -> None:
        """Put down what the batch has in each window, while a person is to say whether another graph takes over."""
        self._log.read()
        story = self._log.story
        if story.successor and whole.rows and must_summarise(story, self._epoch):
            epoch = story.epochs[self._epoch]
            before = epoch.queries[self._query].newest_window if self._query in epoch.queries else None
            files = SummaryFiles(FlowPlaces(self._log.folder.parent).name_epoch(epoch.record.x_folder), self._query)
            files.write(batch, story.successor, self._target.writer.condense(whole), before)

    def _make_record(
        self, name: DraftName, judged: Judgement, whole: Draft, kept: Draft | None, begin: BatchBegin
    ) -> Callable[[Story, int, float], Batch | None]:
        rows, counts = kept.rows if kept else 0, begin.counts

        def make(story: Story, n: int, at: float) -> Batch | None:
            if self._judge(story, name.batch, whole) != judged:
                return None
            self._check()
            return Batch(
                n=n,
                at=at,
                epoch=self._epoch,
                query=self._query,
                batch=name.batch,
                first=whole.first,
                last=whole.last,
                rows=whole.rows,
                kept=rows,
                watermark=begin.watermark,
                files=tuple(path for path, _ in kept.files) if kept and rows else (),
                x_begin=begin.offsets,
                x_newest=begin.newest,
                x_tag=name.tag,
                x_end=begin.end,
                x_late=counts.late,
                x_ahead=counts.ahead,
                x_nulls=counts.nulls,
                x_read=counts.read,
            )

        return make

    def _judge(self, story: Story, batch: int, draft: Draft) -> Judgement:
        return judge_batch(story, self._epoch, self._query, batch, draft.first, draft.last)

    def _await_turn(self, batch: int, draft: Draft) -> Judgement:
        """The judgement, once it is one that holds. Raises ``StreamRefused``, or as ``check``."""
        while True:
            self._check()
            self._log.read()
            judged = self._judge(self._log.story, batch, draft)
            if not must_wait(self._log.story, self._epoch, judged):
                break
            self._clock.sleep(_LOOK_S)
        if judged.kind == "refused":
            raise StreamRefused(self._epoch, self._query, batch, str(judged.reason))
        return judged

    def _refuse_another(self, batch: int) -> None:
        """Raise ``StreamRefused`` for one that is recorded, and of other rows than were."""
        if not is_same(self._log.story, self._epoch, self._query, batch, self._read_begin(batch).end):
            raise StreamRefused(self._epoch, self._query, batch, ANOTHER)

    def _has_record(self, batch: int) -> bool:
        self._log.read()
        return is_recorded(self._log.story, self._epoch, self._query, batch)


def is_recorded(story: Story, epoch: int, query: str, batch: int) -> bool:
    """Whether the log has the batch, whatever became of its rows."""
    found = story.epochs.get(epoch)
    return found is not None and query in found.queries and batch <= found.queries[query].last.batch


def is_same(story: Story, epoch: int, query: str, batch: int, end: str) -> bool:
    """Whether a batch that is recorded may be the one that the log has.

    :param end: see ``Batch.x_end``; empty: not known.
    """
    last = story.epochs[epoch].queries[query].last
    # Spark begins none before it has committed the one before: it has to repeat the last one alone.
    return not (last.x_end and end) or (batch, end) == (last.batch, last.x_end)


def must_wait(story: Story, epoch: int, judged: Judgement) -> bool:
    """Whether a record is to come that makes another judgement, or makes this one the batch's turn."""
    if judged.kind == "refused":
        # Spark runs a query before its driver can say that all queries are active.
        return judged.reason in ("not started", "stopped")
    record = story.epochs[epoch].record
    before = story.epochs.get(record.x_after)
    is_ahead = record.x_order == "window" and before is not None and not before.drained
    return is_ahead and judged.kind in ("all", "part")
