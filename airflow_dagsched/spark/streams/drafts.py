"""Where the batches of a stream are written aside, and what each draft is of.

::

    /data/.dagsched-clean/stream/<dag>%2F<flow>-<digest>/3-by_user-17-0c1f9a2e/new/..     for a table
    <epoch>/aside/3-by_user-17-0c1f9a2e/new/..                                            for a function
                                                                             /done/..     delivered, to be removed

A draft's name is its journal: epoch, query, batch, and a tag that no other try of the batch has. The record of the
batch in the flow's log says whether the draft with that tag counts, and which files of it: so nothing else has to be
written down to finish, or to throw away, what a driver left that died.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from airflow_dagsched.launch.protocol.keys import digest_parts, escape_key, name_hidden_folder
from airflow_dagsched.spark.files.store import Store, join_path
from airflow_dagsched.spark.outputs.swap import STREAMS, lock_path
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces

NEW = "new"
"""Folder of a draft with what is to be delivered."""
DONE = "done"
"""The same once it was delivered."""
_DRAFT = re.compile(r"(\d+)-(.+)-(\d+)-([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class DraftName:
    """One try of one batch."""

    epoch: int
    step: str
    """Of the query, as names of folders have it."""
    batch: int
    tag: str

    def __str__(self) -> str:
        return f"{self.epoch}-{self.step}-{self.batch}-{self.tag}"


@dataclass(frozen=True, slots=True)
class DraftPlace:
    """Where the drafts of one target are."""

    folder: str
    lock: str
    """Path that is locked while drafts are delivered."""
    top: str
    """Folder above that is there before any draft is."""

    def name_folder(self, draft: DraftName) -> str:
        """Path of the draft."""
        return join_path(self.folder, str(draft))


def make_name(epoch: int, query: str, batch: int) -> DraftName:
    """The name of a new try."""
    return DraftName(epoch, escape_key(query), batch, uuid.uuid4().hex[:8])


def parse_name(name: str) -> DraftName | None:
    """What the folder of that name is a draft of; None: it is none."""
    match = _DRAFT.fullmatch(name)
    return DraftName(int(match[1]), match[2], int(match[3]), match[4]) if match else None


def place_beside(table: str, flow: FlowPlaces) -> DraftPlace:
    """For drafts of a flow to the table in this folder, which has no links in its path."""
    # By the path of the log, too: streams of one name in two work dirs number their epochs alike.
    name = f"{escape_key(f'{flow.folder.parent.name}/{flow.folder.name}')}-{digest_parts(str(flow.folder))[:8]}"
    top = table.rpartition("/")[0]
    return DraftPlace(join_path(name_hidden_folder(table), STREAMS, name), lock_path(table), top)


def place_aside(epoch: EpochPlaces) -> DraftPlace:
    """For drafts that a function gets."""
    return DraftPlace(str(epoch.aside), str(epoch.aside / "lock"), str(epoch.folder))


def list_drafts(store: Store, place: DraftPlace) -> tuple[DraftName, ...]:
    """All drafts there, whoever writes them."""
    found = (parse_name(entry.name) for entry in store.list(place.folder) if entry.is_folder)
    return tuple(draft for draft in found if draft is not None)
