"""The sink of a query that routes: each batch is written aside, entered in the inbox's log, and only then moved in.

::

    rule known -- draft written -- durable -- rule still holds, and entered -- moved into the inbox -- Spark commits
      ^ waits behind a hold                     ^ the point at which it counts

An entry gets its number only where the rule by which its rows were split is the one that holds there: a driver that
stood still over a hold splits them anew. So behind a fence no row is where the old graph alone would find it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from airflow_dagsched.spark.files.clock import MACHINE, Clock
from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.outputs.commits import WriteRefused
from airflow_dagsched.spark.outputs.locks import FencedStore
from airflow_dagsched.spark.outputs.swap import list_draft_files
from airflow_dagsched.spark.outputs.table_checks import make_durable
from airflow_dagsched.spark.streams.inbox.clear_inbox import clear_inbox
from airflow_dagsched.spark.streams.inbox.place_rows import Counts
from airflow_dagsched.spark.streams.mover import finish_due, move_files
from airflow_dagsched.switch.inbox.entries import Entry, RoutedRows
from airflow_dagsched.switch.inbox.inbox_story import InboxStory
from airflow_dagsched.switch.inbox.routing import Route, find_late_before, make_entry, make_route
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.inbox_log import InboxLog
from airflow_dagsched.switch.places import InboxPlaces

_DRAFT = re.compile(r"(\d+)-([0-9a-f]{8})")
_LOOK_S = 0.5
"""Between two looks for a rule that is waited for."""


@dataclass
class StaleCheckpoint(WriteRefused):
    """Spark begins at a batch before the last one that was entered: it repeats no other."""

    source: str
    batch: int
    entered: int

    def __str__(self) -> str:
        return (
            f"batch {self.batch} of {self.source!r} begins, and the inbox has batches up to {self.entered}: the "
            "service's checkpoint was removed, restored or lost. `airflow dagsched stream stop DAG`, then switch to "
            "channel='replay', which goes on from the table"
        )


class Writer(Protocol):
    """Writes batches aside."""

    def write(self, df: Any, folder: str, route: Route, late_before: float) -> Counts:
        """Write the rows into a new draft, each where the rule says."""
        ...

    def execute(self, df: Any) -> None:
        """Run the batch, and keep nothing of it."""
        ...


class InboxSink:
    """Takes the batches of one source, one after the other.

    :param flow: the flow's log, read by this sink alone.
    :param boxes: source -> its inbox.
    :param lateness: of the graphs that read, in seconds.
    :param check: raises what is to end the query: the lease was lost, or the driver ends.
    """

    def __init__(
        self,
        *,
        flow: FlowLog,
        source: str,
        boxes: Mapping[str, InboxPlaces],
        store: Store,
        writer: Writer,
        lateness: Callable[[], float],
        check: Callable[[], None],
        clock: Clock = MACHINE,
    ) -> None:
        self._flow = flow
        self._logs = {name: InboxLog(each.log) for name, each in boxes.items()}
        self._log = self._logs[source]
        self._places = boxes[source]
        self._store = store
        self._writer = writer
        self._lateness = lateness
        self._check = check
        self._clock = clock

    def take(self, df: Any, batch: int) -> None:
        """What ``foreachBatch`` calls. Raises as ``check``."""
        while (route := self._await_route(batch)) is not None:
            if self._take_by(df, batch, route):
                break
        else:
            self._writer.execute(df)
        self.finish()
        self._keep_small()

    def finish(self) -> None:
        """Move in what was entered, by this driver or one that died; what can never be is removed."""
        self._log.read()
        lock = str(self._places.folder / "lock")
        finish_due(self._store, lock, self._list_due, self._finish_draft, self._clock)

    def _keep_small(self) -> None:
        """Neither the inbox nor its log grows for ever."""
        self._flow.read()
        clear_inbox(self._store, self._places, self._log, self._flow.story, self._clock.now())
        self._log.compact()

    def _await_route(self, batch: int) -> Route | None:
        """The rule for the batch, once there is one; None: the batch has its entry."""
        while True:
            self._check()
            self._log.read()
            if batch < self._log.story.batch:
                raise StaleCheckpoint(self._places.folder.name, batch, self._log.story.batch)
            if batch == self._log.story.batch:
                return None
            self._flow.read()
            route = make_route(self._flow.story, self._log.story)
            if route is not None:
                return route
            self._clock.sleep(_LOOK_S)

    def _take_by(self, df: Any, batch: int, route: Route) -> bool:
        """Enter the batch, its rows split by this rule; False: another rule holds now, or another driver was faster."""
        tag = uuid.uuid4().hex[:8]
        folder = self._name_draft(f"{batch}-{tag}")
        try:
            counts = self._writer.write(df, folder, route, self._find_late_before())
            files = list_draft_files(self._store, folder)
            make_durable(self._store, files, folder, str(self._places.folder.parent))
            paths = tuple(path for path, _ in files)
            rows = RoutedRows(batch, counts.newest, counts.rows, counts.dead, paths, tag)
            is_entered = self._log.append(self._make_entry(route, rows)) is not None or self._has_entry(rows)
        except Exception:
            # Looked for first: it may have been entered for all the error.
            if not self._has_entry(RoutedRows(batch, None, tag=tag)):
                self._store.delete(folder)
            raise
        if not is_entered:
            self._store.delete(folder)
        return is_entered

    def _make_entry(self, route: Route, rows: RoutedRows) -> Callable[[InboxStory, int, float], Entry | None]:
        def make(inbox: InboxStory, n: int, at: float) -> Entry | None:
            if make_route(self._flow.story, inbox) != route:
                return None
            self._check()
            return make_entry(inbox, rows, n, at)

        return make

    def _has_entry(self, rows: RoutedRows) -> bool:
        self._log.read()
        routed = self._log.story.routed
        return routed is not None and (routed.batch, routed.tag) == (rows.batch, rows.tag)

    def _find_late_before(self) -> float:
        for each in self._logs.values():
            each.read()
        living = [each.record for each in self._flow.story.epochs.values() if not each.has_ended]
        windows = [record.x_window for record in living if record.x_window > 0]
        inboxes = [each.story for each in self._logs.values()]
        return find_late_before(inboxes, self._lateness(), windows) if windows else 0.0

    def _list_due(self, store: Store) -> list[str]:
        """Drafts of batches that have an entry."""
        found = ((entry.name, _DRAFT.fullmatch(entry.name)) for entry in store.list(str(self._places.drafts)))
        return [name for name, match in found if match is not None and int(match[1]) <= self._log.story.batch]

    def _finish_draft(self, store: FencedStore, name: str) -> None:
        routed, folder = self._log.story.routed, self._name_draft(name)
        if routed is not None and name == f"{routed.batch}-{routed.tag}":
            move_files(store, str(self._places.folder), folder, routed.files)
        store.delete(folder)

    def _name_draft(self, name: str) -> str:
        return join_path(str(self._places.drafts), name)
