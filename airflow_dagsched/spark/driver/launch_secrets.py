"""What the launch task gives this driver program alone: what code to load, and Spark's settings.

Both are in files of a folder that only its user may open. Their names, and what must be in them, are in the
environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.manifest import ENV_PAYLOAD, ENV_PAYLOAD_SHA256, ENV_PROPERTIES, hash_content


@dataclass
class Refused(DagschedError):
    """This driver cannot run this manifest; the message says what to change."""

    reason: str

    def __str__(self) -> str:
        return self.reason


def take_private_content(environment: Mapping[str, str]) -> bytes:
    """The payload; it and the file with settings are removed. Raises :class:`Refused` for one of somebody else's."""
    with suppress(OSError):
        # spark-submit has read it before it started us.
        Path(environment[ENV_PROPERTIES]).unlink() if environment.get(ENV_PROPERTIES) else None
    path = environment.get(ENV_PAYLOAD)
    if not path:
        raise Refused(f"{ENV_PAYLOAD} is not set: the driver program is started by a launch task")
    content = Path(path).read_bytes()
    # Before it is unpickled: to unpickle is to run what is in it.
    check_digest(content, environment.get(ENV_PAYLOAD_SHA256), "the payload")
    Path(path).unlink()
    return content


def check_digest(content: bytes, expected: str | None, what: str) -> None:
    """Raises :class:`Refused` where ``content`` is not what the launch task wrote."""
    if hash_content(content) != expected:
        raise Refused(
            f"{what} is not as the launch task wrote it: somebody else changed it, and nothing of it is loaded "
            "(see who may write the work folder: docs/security.md)"
        )
