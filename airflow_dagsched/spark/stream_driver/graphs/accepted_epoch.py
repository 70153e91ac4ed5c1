"""An epoch as its folder has it, once this program may believe what is there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.errors import LaunchRefused
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.secrecy.private_files import check_folder
from airflow_dagsched.launch.streams.manifest import StreamManifest, read_stream_manifest
from airflow_dagsched.launch.streams.private_folder import read_private_payload
from airflow_dagsched.spark.driver.fitness import check_python
from airflow_dagsched.spark.driver.launch_secrets import Refused
from airflow_dagsched.spark.steps.payload import Payload, read_payload
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces
from airflow_dagsched.switch.records import Epoch
from airflow_dagsched.switch.story import Story
from airflow_dagsched.version import __version__


@dataclass(frozen=True)
class AcceptedEpoch:
    """One epoch to run."""

    record: Epoch
    flow: FlowPlaces
    places: EpochPlaces
    manifest: StreamManifest
    payload: Payload
    masking: Masking
    """Of all secrets of the application."""

    @property
    def number(self) -> int:
        """As the log numbers epochs."""
        return self.record.epoch


def find_epoch(story: Story, folder: Path) -> Epoch:
    """The record that names the epoch's folder. Raises ``Refused`` if there is none."""
    found = [each.record for each in story.epochs.values() if each.record.x_folder == folder.name]
    if not found:
        raise Refused(f"{folder}: no epoch in the log has this folder: it was never asked for, or is long gone")
    return found[0]


def accept_epoch(flow: FlowPlaces, record: Epoch, masking: Masking) -> AcceptedEpoch:
    """The epoch of the record. Raises ``Refused`` where its private folder is somebody else's, or of another epoch, or
    where this Python is not what it was made for.

    :param masking: learns the secrets that come with it.
    """
    places = flow.name_epoch(record.x_folder)
    manifest, payload = read_folder(flow, places, masking)
    if (manifest.folder, manifest.fingerprint) != (record.x_folder, record.fingerprint):
        raise Refused(f"{places.private} is of another epoch: nothing of it is run")
    return AcceptedEpoch(record, flow, places, manifest, payload, masking)


def read_folder(flow: FlowPlaces, places: EpochPlaces, masking: Masking) -> tuple[StreamManifest, Payload]:
    """What is in a private folder. Raises as ``accept_epoch``."""
    try:
        check_folder(places.private, flow.work_dir, places.folder.name)
        # To unpickle is to run: not before it is known who wrote it.
        text, secrets, payload = read_payload(read_private_payload(places.private))
        manifest = read_stream_manifest(text, __version__)
    except (LaunchRefused, OSError, ValueError) as error:
        raise Refused(str(error)) from error
    check_python(manifest.python)
    masking.add(secrets)
    masking.learn([payload.list_arguments(), encode_plain(manifest.context), encode_plain(manifest.steps)])
    return manifest, payload
