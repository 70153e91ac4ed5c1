"""Where the batches of a stream are written aside.

::

    /data/.dagsched-clean/stream/<dag>%2F<flow>-<digest>/3-by_user-17-0c1f9a2e/new/..     for a table
    <epoch>/aside/3-by_user-17-0c1f9a2e/new/..                                            for a function
                                                                             /done/..     delivered, to be removed

``switch/drafts`` says what names mean.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from airflow_dagsched.launch.protocol.keys import escape_key, name_hidden_folder
from airflow_dagsched.spark.files.store import Store, join_path, name_local
from airflow_dagsched.spark.outputs.swap import lock_path
from airflow_dagsched.switch.drafts import STREAMS, DraftName, name_drafts_folder, parse_name
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces

NEW = "new"
"""Folder of a draft with what is to be delivered."""
DONE = "done"
"""The same once it was delivered."""


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


def place_beside(table: str, flow: FlowPlaces) -> DraftPlace:
    """For drafts of a flow to the table in this folder, which has no links in its path."""
    folder = join_path(name_hidden_folder(table), STREAMS, name_drafts_folder(flow))
    return DraftPlace(folder, lock_path(table), table.rpartition("/")[0])


def place_aside(epoch: EpochPlaces, step: str) -> DraftPlace:
    """For drafts that the function of a step gets: no other step's is to have them."""
    folder = name_local(epoch.aside / escape_key(step))
    return DraftPlace(folder, join_path(folder, "lock"), name_local(epoch.folder))


def list_drafts(store: Store, place: DraftPlace) -> tuple[DraftName, ...]:
    """All drafts there, whoever writes them."""
    found = (parse_name(entry.name) for entry in store.list(place.folder) if entry.is_folder)
    return tuple(draft for draft in found if draft is not None)
