"""What relay and host say to each other: one JSON object a message, told apart by its ``kind``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_dagsched.launch.protocol.wire import Unreadable, encode_plain, fit_dataclass, load_json


@dataclass(frozen=True, slots=True)
class RunAsked:
    """A launch task's run; its output and its errors come as open files beside it."""

    manifest: str
    environment: Mapping[str, str]
    """All of it, as a driver program of its own would have it."""
    folder: str
    """Working folder."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Of the application that it would have for itself: see ``identity.Wanted``."""
    idle_s: float | None = None
    """So long the application waits after it; None: as whoever started the application said."""
    kind: Literal["run"] = "run"


@dataclass(frozen=True, slots=True)
class StatusAsked:
    """Somebody wants to know how the application stands."""

    kind: Literal["status"] = "status"


@dataclass(frozen=True, slots=True)
class EndAsked:
    """The application is to end: at once, or when the run that it serves has ended."""

    reason: str
    at_once: bool = False
    kind: Literal["end"] = "end"


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The run that this connection asked for is to end, as a driver program that gets SIGTERM does."""

    kind: Literal["stop"] = "stop"


@dataclass(frozen=True, slots=True)
class Taken:
    """The run is served, as number ``run`` of the application."""

    run: int
    kind: Literal["taken"] = "taken"


@dataclass(frozen=True, slots=True)
class Refused:
    """Not this run: another is at work, or the application ends."""

    reason: str
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class Ended:
    """The run has ended, with the exit code of its driver program; 128 and the signal's number where it was killed."""

    code: int
    kind: Literal["ended"] = "ended"


@dataclass(frozen=True, slots=True)
class Status:
    """How the application stands."""

    state: str
    runs: int
    """That it has served, or serves."""
    application: str
    """Spark's id; empty until there is one."""
    since_s: float
    """Seconds since its state began."""
    ends_in_s: float | None = None
    """While it waits: seconds until it ends by itself."""
    heap_mb: int = 0
    """That Java had in use after the last run, collected."""
    kind: Literal["standing"] = "standing"


Message = RunAsked | StatusAsked | EndAsked | StopAsked | Taken | Refused | Ended | Status
KINDS: dict[str, type[Message]] = {
    "run": RunAsked,
    "status": StatusAsked,
    "end": EndAsked,
    "stop": StopAsked,
    "taken": Taken,
    "refused": Refused,
    "ended": Ended,
    "standing": Status,
}


def encode_message(message: Message) -> str:
    """As it goes over the socket."""
    return json.dumps(encode_plain(message), separators=(",", ":"))


def decode_message(text: str) -> Message:
    """The message. Raises ``ValueError`` for what is none."""
    raw: Any = load_json(text)
    kind = KINDS.get(raw.get("kind", "")) if isinstance(raw, Mapping) else None
    found = fit_dataclass(kind, raw) if kind is not None else None
    if found is None:
        raise Unreadable("this is no message of a warm application")
    return found
