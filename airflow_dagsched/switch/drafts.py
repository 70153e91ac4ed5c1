"""What a draft of a batch is of, told by its name, and what becomes of it, told by the log.

A draft's name is its journal: epoch, query, batch, and a tag that no other try of the batch has. The record of the
batch says whether the draft with that tag counts, and which files of it: so nothing else has to be written down to
finish, or to throw away, what a driver left that died.

A query's next batch begins when the one before is delivered, so of each query only the last record can have a draft
that is still to be delivered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from airflow_dagsched.launch.protocol.keys import digest_parts, escape_key
from airflow_dagsched.switch.places import FlowPlaces
from airflow_dagsched.switch.records import Batch
from airflow_dagsched.switch.story import EpochStory, Story

STREAMS = "stream"
"""Name of the folder with drafts of streams, in the hidden one beside a table."""
_DRAFT = re.compile(r"(\d+)-(.+)-(\d+)-([0-9a-f]{8})")
Fate = Literal["deliver", "remove", "leave"]


@dataclass(frozen=True, slots=True)
class DraftName:
    """One try of one batch."""

    epoch: int
    step: str
    """Of the query, as names of folders have it."""
    batch: int
    tag: str
    """Eight hexadecimal digits."""

    def __str__(self) -> str:
        return f"{self.epoch}-{self.step}-{self.batch}-{self.tag}"


def parse_name(name: str) -> DraftName | None:
    """What the folder of that name is a draft of; None: it is none."""
    match = _DRAFT.fullmatch(name)
    return DraftName(int(match[1]), match[2], int(match[3]), match[4]) if match else None


def name_drafts_folder(flow: FlowPlaces) -> str:
    """The folder with a flow's drafts, among those of all streams that write the same table."""
    # By the path of the log, too: streams of one name in two work dirs number their epochs alike.
    return f"{escape_key(f'{flow.folder.parent.name}/{flow.folder.name}')}-{digest_parts(str(flow.folder))[:8]}"


def judge_draft(story: Story, draft: DraftName) -> Fate:
    """What becomes of a draft."""
    epoch = story.epochs.get(draft.epoch)
    if epoch is None:
        # Forgotten, long after all it had was delivered; or asked for behind what was read.
        return "remove" if draft.epoch < max(story.epochs, default=0) else "leave"
    last = _find_last(epoch, draft.step)
    if last is None or draft.batch > last.batch:
        # No driver of such an epoch may record anything.
        return "remove" if epoch.has_ended else "leave"
    return "deliver" if find_record(story, draft) else "remove"


def find_record(story: Story, draft: DraftName) -> Batch | None:
    """The record by which something of the draft is to be delivered; None: nothing is."""
    epoch = story.epochs.get(draft.epoch)
    last = _find_last(epoch, draft.step) if epoch else None
    is_it = last is not None and (last.batch, last.x_tag) == (draft.batch, draft.tag)
    return last if last is not None and is_it and last.files else None


def _find_last(epoch: EpochStory, step: str) -> Batch | None:
    return next((each.last for query, each in epoch.queries.items() if escape_key(query) == step), None)
