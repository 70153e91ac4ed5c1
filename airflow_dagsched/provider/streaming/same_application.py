"""Whether an epoch's graph starts in an application that runs already: then nobody is to start another for it."""

from __future__ import annotations

import pickle
from collections.abc import Collection
from pathlib import Path

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.protocol.manifest import PAYLOAD_KEY
from airflow_dagsched.launch.secrecy.private_files import check_folder
from airflow_dagsched.launch.streams.difference import needs_application
from airflow_dagsched.launch.streams.manifest import StreamManifest, read_stream_manifest
from airflow_dagsched.launch.streams.private_folder import read_private_payload
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces
from airflow_dagsched.switch.story import Story
from airflow_dagsched.version import __version__


def find_application(flow: FlowPlaces, story: Story, held: Collection[int], epoch: int) -> int | None:
    """An epoch whose driver lives, and takes ``epoch`` into its application; None: it needs one of its own.

    :param held: epochs that a driver works for.
    """
    others = sorted(other for other in held if other != epoch and other in story.epochs)
    wanted = _read_manifest(flow, story, epoch) if others else None
    if wanted is None:
        return None
    found = ((other, _read_manifest(flow, story, other)) for other in others)
    return next((other for other, mine in found if mine is not None and not needs_application(mine, wanted)), None)


def _read_manifest(flow: FlowPlaces, story: Story, epoch: int) -> StreamManifest | None:
    """None where it can't be had, or believed: whoever starts the epoch says why."""
    places, work_dir = flow.name_epoch(story.epochs[epoch].record.x_folder), flow.folder.parents[2]
    try:
        return read_private_manifest(places, work_dir)
    except (OSError, ValueError, LookupError, LaunchRefused, pickle.UnpicklingError):
        return None


def read_private_manifest(places: EpochPlaces, work_dir: Path) -> StreamManifest:
    """The epoch's manifest, secrets included. Raises what is wrong with it, or with who may have written it."""
    check_folder(places.private, work_dir, places.folder.name)
    content = pickle.loads(read_private_payload(places.private))
    return read_stream_manifest(content[PAYLOAD_KEY].decode(), __version__)
