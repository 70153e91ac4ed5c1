"""The private folder of an epoch: all that a driver of it is started from, the first time and each time again.

::

    epochs/<folder>/private/       0700, so only the user that made it may write, or read, what is in it
        payload                    pickled: manifest and secrets (see ``make_payload``), and each step's call
        spark.properties           for ``spark-submit --properties-file``
        environment.json           {name: value} of what differs from the environment of whoever starts it
        command.json               {"argv": [..], "cwd": ".."}
        room.json                  where its executors are, as they were planned: for graphs that join its application
        placing.json               what it was planned with: to see whether it would be planned elsewhere by now

A driver program is ``spark-submit .. airflow_dagsched/spark/stream_driver/main.py epochs/<folder>``. It reads the
payload of the folder it is started on, and of each epoch that its application is to take over later; it removes
nothing. No digest tells it what must be in there, as it does a batch driver: whoever starts the program again, or an
application that another run started, could have one only from the same folder. What is believed instead is the folder,
because of whose it is (``check_folder``), and that its manifest is of the folder and the fingerprint that the epoch's
record in the log names: so no other epoch's folder can be put in its place.
"""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_dagsched.launch.protocol.manifest import PAYLOAD_KEY, SECRETS_KEY
from airflow_dagsched.launch.protocol.wire import load_json
from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.launch.secrecy.properties import read_properties, write_properties
from airflow_dagsched.launch.streams.manifest import StreamManifest

PAYLOAD, PROPERTIES, ENVIRONMENT, COMMAND = "payload", "spark.properties", "environment.json", "command.json"
ROOM, PLACING = "room.json", "placing.json"


@dataclass(frozen=True, slots=True)
class StartCommand:
    """How the driver program is started: the same way each time."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """What differs from that of the process that starts it."""


def make_payload(manifest: StreamManifest, calls: Mapping[str, bytes], secrets: Iterable[str] = ()) -> bytes:
    """The payload, as ``spark/steps/payload.py`` reads it.

    :param calls: step -> its ``Call``, pickled alone.
    """
    texts = {PAYLOAD_KEY: manifest.to_json(), SECRETS_KEY: json.dumps(sorted(secrets))}
    return pickle.dumps({**{key: text.encode() for key, text in texts.items()}, **calls})


def write_private_folder(
    folder: Path, payload: bytes, properties: str, command: StartCommand, room: bytes = b"", placing: bytes = b""
) -> None:
    """Make the folder, all of it or nothing. Raises ``OSError`` if there is one.

    :param folder: ``private`` in the epoch's own, which comes to be with it.
    :param properties: text of ``spark.properties``.
    :param room: text of ``room.json``; empty: nobody planned any.
    :param placing: text of ``placing.json``; empty: no policy placed it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".draft-{uuid.uuid4().hex}")
    draft.mkdir(mode=0o700)
    started = {"argv": list(command.argv), "cwd": command.cwd}
    contents = {
        PAYLOAD: payload,
        PROPERTIES: properties.encode(),
        ENVIRONMENT: json.dumps(dict(command.environment)).encode(),
        COMMAND: json.dumps(started).encode(),
        ROOM: room,
        PLACING: placing,
    }
    for name, content in contents.items():
        write_file(draft / name, content, 0o600)
    # Fails where a folder is that has something in it.
    draft.rename(folder)


def read_start_command(folder: Path) -> StartCommand:
    """How the driver of the epoch with this private folder is started."""
    started = load_json((folder / COMMAND).read_text())
    return StartCommand(tuple(started["argv"]), started["cwd"], load_json((folder / ENVIRONMENT).read_text()))


def read_private_payload(folder: Path) -> bytes:
    """The payload in the private folder, whose owner must have been looked at before: to unpickle is to run."""
    return (folder / PAYLOAD).read_bytes()


def read_settings(folder: Path) -> dict[str, str]:
    """The settings that the epoch's application is started with."""
    return read_properties((folder / PROPERTIES).read_text())


def drop_settings(folder: Path, prefix: str) -> None:
    """Start the epoch from now on without the settings whose names begin with ``prefix``."""
    kept = {name: value for name, value in read_settings(folder).items() if not name.startswith(prefix)}
    draft = folder / f".{PROPERTIES}-{uuid.uuid4().hex}"
    write_file(draft, write_properties(kept).encode(), 0o600)
    draft.replace(folder / PROPERTIES)
