"""The warm applications of this user on this machine, by the folders that their hosts keep."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from airflow_dagsched.launch.secrecy.cache_folder import check_private, is_own_folder
from airflow_dagsched.launch.warm.about import ABOUT, IDLE, OUTPUT, About, read_about
from airflow_dagsched.launch.warm.messages import EndAsked, Message, Status, StatusAsked, decode_message, encode_message
from airflow_dagsched.private_socket import NAME, connect_to, receive_text, send_text
from airflow_dagsched.process_names import is_gone

ANSWER_WITHIN_S = 5.0
"""A host that cleans up answers when it has."""
BEGUN_WITHIN_S = 3600.0
"""What a folder is for is written as soon as it is made."""
FILES = frozenset({ABOUT, OUTPUT, IDLE, NAME, f"{NAME}.new"})
"""All that a folder has."""
_FOLDER = re.compile(r"[0-9a-f]{8}")


def choose_name() -> str:
    """The name of a new application's folder."""
    return secrets.token_hex(4)


@dataclass(frozen=True, slots=True)
class Application:
    """One that somebody may still be at home in."""

    folder: Path
    about: About

    @property
    def name(self) -> str:
        """As a person names it."""
        return self.folder.name


def list_applications(folder: Path) -> Iterator[Application]:
    """Those in ``folder``, the oldest first; what is left of others is removed.

    There are none where the folder is not this user's alone: launches put none there.
    """
    found = [(read_about(each), each) for each in _list_folders(folder)]
    # Who has found what was looked for asks no more hosts.
    for about, each in sorted(found, key=lambda pair: (pair[0].began if pair[0] else 0.0, pair[1].name)):
        if _is_left(each, about):
            _remove(each)
        elif about is not None:
            yield Application(each, about)


def _list_folders(folder: Path) -> list[Path]:
    """Those that an application may have."""
    try:
        check_private(folder)
        return [each for each in folder.iterdir() if _FOLDER.fullmatch(each.name) and _is_private(each)]
    except OSError:
        return []


def _is_private(path: Path) -> bool:
    """Whether it is a folder of this user alone, and still there."""
    try:
        return is_own_folder(path)
    except FileNotFoundError:  # it has just ended
        return False


def _remove(folder: Path) -> None:
    """Take it away, unless there is something in it that no application has put there."""
    # File by file: nothing goes that came in between, either.
    with suppress(OSError):
        if FILES.issuperset(each.name for each in folder.iterdir()):
            for name in FILES:
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()


def _is_left(folder: Path, about: About | None) -> bool:
    """Whether nobody is at home, and nobody comes.

    :param about: None: nobody has written it, or another version of this package has.
    """
    if not (folder / NAME).exists():
        return _is_old(folder) if about is None else is_gone(about.starter)
    try:
        connect_to(folder, ANSWER_WITHIN_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _is_old(folder: Path) -> bool:
    """Whether whoever made it would have written what it is for by now."""
    try:
        return time.time() - folder.stat().st_mtime > BEGUN_WITHIN_S
    except FileNotFoundError:
        return False


def has_warm(folder: Path, connection: str) -> bool:
    """Whether an application over ``connection`` is there; whether it fits a launch, that launch finds out."""
    return any(each.about.connection == connection for each in list_applications(folder))


def ask_status(application: Application) -> Status | None:
    """How it stands; None: nobody says."""
    answer = _ask(application, StatusAsked())
    return answer if isinstance(answer, Status) else None


def tell_end(application: Application, reason: str, *, at_once: bool = False) -> Status | None:
    """Have it end: when its run has ended, or at once; how it stood."""
    answer = _ask(application, EndAsked(reason, at_once))
    return answer if isinstance(answer, Status) else None


def _ask(application: Application, message: Message) -> Message | None:
    try:
        with connect_to(application.folder, ANSWER_WITHIN_S) as link:
            send_text(link, encode_message(message))
            received = receive_text(link)
            return decode_message(received[0]) if received is not None else None
    except (OSError, ValueError):
        return None
