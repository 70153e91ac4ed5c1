"""Unix sockets that only this user's processes meet at: in a folder of his own, and each end looks who the other is.

A message is its length in 4 bytes, then so many bytes of text; open files may go with it.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = "socket"
"""Of the socket in its folder."""
LENGTH = struct.Struct("!I")
CREDENTIALS = struct.Struct("3i")
"""Process, user and group of the other end, as Linux tells them."""
MOST_FILES = 8
LONGEST = 64 * 1024 * 1024


class Stranger(OSError):
    """What should be this user's alone is another's, or may be written by others."""


@contextmanager
def _name_socket(folder: Path) -> Iterator[str]:
    """A path of the folder's socket that is short enough: Linux takes 107 bytes, and a cache folder may have more."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(opened)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise Stranger(f"{folder} is not this user's alone")
        yield f"/proc/self/fd/{opened}/{NAME}"
    finally:
        os.close(opened)


def listen_in(folder: Path) -> socket.socket:
    """A socket that waits in ``folder``. Raises ``OSError`` where there is one, or where the folder is not private."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _name_socket(folder) as path:
            # Under its name only once it listens: who is refused takes it for one that nobody listens at any more.
            listener.bind(f"{path}.new")
            listener.listen(16)
            os.link(f"{path}.new", path)
            Path(f"{path}.new").unlink()
    except OSError:
        listener.close()
        raise
    return listener


def connect_to(folder: Path, within_s: float | None = None) -> socket.socket:
    """A connection to whoever listens in ``folder``. Raises ``OSError`` where nobody of this user does."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(within_s)
        with _name_socket(folder) as path:
            link.connect(path)
        check_peer(link)
    except OSError:
        link.close()
        raise
    return link


def check_peer(link: socket.socket) -> int:
    """The process at the other end. Raises :class:`Stranger` where it is not of this user."""
    process, user, _ = CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    if user != os.geteuid():
        raise Stranger(f"the other end is a process of user {user}")
    return int(process)


def send_text(link: socket.socket, text: str, files: Sequence[int] = ()) -> None:
    """Send a message, and open files with it. Raises ``OSError`` where the other end is gone."""
    content = text.encode()
    head = LENGTH.pack(len(content))
    # The files go with the first byte.
    sent = socket.send_fds(link, [head], list(files)) if files else link.send(head)
    link.sendall(head[sent:] + content)


def receive_text(link: socket.socket) -> tuple[str, list[int]] | None:
    """The next message, and the files that came with it; None: the other end has closed.

    Raises ``OSError``, and ``ValueError`` for what is no message.
    """
    head, files, _, _ = socket.recv_fds(link, LENGTH.size, MOST_FILES)
    try:
        if not head:
            return None
        (length,) = LENGTH.unpack(head + _receive_bytes(link, LENGTH.size - len(head)))
        if length > LONGEST:
            raise ValueError(f"a message of {length} bytes")
        return _receive_bytes(link, length).decode(), files
    except BaseException:
        for each in files:
            with suppress(OSError):
                os.close(each)
        raise


def has_left(link: socket.socket) -> bool:
    """Whether the other end has closed, and all that it sent is read."""
    # Looked at first: with a time-out of its own the socket would wait for a word, whatever its flags say.
    looking = select.poll()
    looking.register(link, select.POLLIN)
    try:
        return bool(looking.poll(0)) and not link.recv(1, socket.MSG_PEEK)
    except OSError:
        return True


def _receive_bytes(link: socket.socket, length: int) -> bytes:
    parts = []
    while length:
        part = link.recv(min(length, 1 << 20))
        if not part:
            raise ConnectionResetError("the other end closed within a message")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
