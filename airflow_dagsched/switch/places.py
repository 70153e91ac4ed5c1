"""Where the files of a flow are: names of folders and files below the work dir.

::

    <work_dir>/streams/<dag>/<flow>/
        log/0000000001.json .. snapshot-0000000500.json
        epochs/<folder>/manifest.json plan.json                     for people, without secrets
                        private/                                    what a driver is started from again, secrets too
                        status.json exit.json starts.json follower.json spawned.json    replaced in place
                        starting.lock
                        orders/<order>.json                         made exclusively
                        queries/<step>/checkpoint newest.json    empty/<source>/
                        aside/<step>/<draft>  compare/<step>-<batch>.json  output/driver.log
        refused.json                                                of code that no epoch was made of
        inbox/<source>/log/ drafts/<draft>/ rows/dagsched_epoch=<n>/ dead/ schema.json
        inbox-service/private/ status.json ..                       as an epoch's
        standby/00000001/private/ status.json ..                    as an epoch's; the newest one stands by
    <work_dir>/leases/<stream:dag/flow>/epoch-<n>/ standby/         the inbox service has epoch 0
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.launch.protocol.keys import escape_key

INBOX_SERVICE = 0
"""Stands for an epoch in the lease of the inbox service."""
STANDBY = -1
"""The same for the application that waits to be needed."""


@dataclass(frozen=True, slots=True)
class EpochPlaces:
    """Files of one epoch."""

    folder: Path

    @property
    def manifest(self) -> Path:
        """What the epoch is made of, without secrets."""
        return self.folder / "manifest.json"

    @property
    def plan(self) -> Path:
        """The plan its executors are of."""
        return self.folder / "plan.json"

    @property
    def private(self) -> Path:
        """Folder that only its owner may read."""
        return self.folder / "private"

    @property
    def status(self) -> Path:
        """The driver's sign of life."""
        return self.folder / "status.json"

    @property
    def exit(self) -> Path:
        """How the last driver ended."""
        return self.folder / "exit.json"

    @property
    def starts(self) -> Path:
        """How often it was started without a batch."""
        return self.folder / "starts.json"

    @property
    def spawned(self) -> Path:
        """The process that was started last."""
        return self.folder / "spawned.json"

    @property
    def starting(self) -> Path:
        """Held by the process that starts a driver."""
        return self.folder / "starting.lock"

    @property
    def follower(self) -> Path:
        """Which task follows the epoch."""
        return self.folder / "follower.json"

    @property
    def orders(self) -> Path:
        """Folder of what people want of the epoch."""
        return self.folder / "orders"

    @property
    def output(self) -> Path:
        """What the driver prints."""
        return self.folder / "output" / "driver.log"

    def name_query(self, step: str) -> Path:
        """Folder of a query: its checkpoint, and what is told of its progress."""
        return self.folder / "queries" / escape_key(step)

    def name_checkpoint(self, step: str) -> Path:
        """Folder of Spark's, in a query's own."""
        return self.name_query(step) / "checkpoint"

    def name_newest(self, step: str) -> Path:
        """File with how far a query of several sources has read."""
        return self.name_query(step) / "newest.json"

    def name_commits(self, step: str) -> Path:
        """Spark's file of each batch of a query that it has committed."""
        return self.name_checkpoint(step) / "commits"

    @property
    def empty(self) -> Path:
        """Folder with files without a row, a folder for each source."""
        return self.folder / "empty"

    @property
    def aside(self) -> Path:
        """Folder with drafts of batches that go into no table."""
        return self.folder / "aside"

    def name_comparison(self, step: str, batch: int) -> Path:
        """File with what a batch has in each window, to compare epochs by."""
        return self.folder / "compare" / f"{escape_key(step)}-{batch}.json"


@dataclass(frozen=True, slots=True)
class InboxPlaces:
    """Files of the inbox of one source."""

    folder: Path

    @property
    def log(self) -> Path:
        """Folder of its log."""
        return self.folder / "log"

    @property
    def drafts(self) -> Path:
        """Folder of batches that are not in it yet."""
        return self.folder / "drafts"

    @property
    def rows(self) -> Path:
        """Folder of its rows, a part for each epoch."""
        return self.folder / "rows"

    @property
    def schema(self) -> Path:
        """Columns of its rows, as Spark's JSON."""
        return self.folder / "schema.json"


@dataclass(frozen=True, slots=True)
class FlowPlaces:
    """Files of one flow."""

    folder: Path

    @property
    def log(self) -> Path:
        """Folder of the log."""
        return self.folder / "log"

    @property
    def refused(self) -> Path:
        """Which code was refused last, before there was an epoch of it."""
        return self.folder / "refused.json"

    @property
    def inboxes(self) -> Path:
        """Folder with all inboxes."""
        return self.folder / "inbox"

    def name_inbox(self, source: str) -> InboxPlaces:
        """Files of the inbox of a source."""
        return InboxPlaces(self.inboxes / escape_key(source))

    @property
    def inbox_service(self) -> EpochPlaces:
        """Files of the query that routes."""
        return EpochPlaces(self.folder / "inbox-service")

    @property
    def lease_key(self) -> str:
        """The flow, as leases name what they are for."""
        # By the folder, not by the ids: of these some can't be read back from it.
        return f"stream:{self.folder.parent.name}/{self.folder.name}"

    def name_epoch(self, folder: str) -> EpochPlaces:
        """Files of the epoch whose record names this folder."""
        return EpochPlaces(self.folder / "epochs" / folder)

    @property
    def standbys(self) -> Path:
        """Folder with a folder for each application that waits, or waited, to be needed."""
        return self.folder / "standby"

    @property
    def work_dir(self) -> Path:
        """Folder that all flows' files are below."""
        return self.folder.parents[2]

    def name_leases(self, epoch: int) -> Path:
        """Folder with the leases of an epoch."""
        return self.work_dir / "leases" / escape_key(self.lease_key) / escape_key(name_lease(epoch))


def name_flow(work_dir: Path, dag_id: str, flow: str) -> FlowPlaces:
    """Files of a flow of a DAG."""
    return FlowPlaces(work_dir / "streams" / escape_key(dag_id) / escape_key(flow))


def name_lease(epoch: int) -> str:
    """The interval that leases name for an epoch."""
    return "standby" if epoch == STANDBY else f"epoch-{epoch}"
