"""Sockets where only one user's processes meet."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from airflow_dagsched.private_socket import Stranger, connect_to, has_left, listen_in, receive_text, send_text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    deep = tmp_path.joinpath(*("a long name of a folder" for _ in range(8)))
    deep.mkdir(parents=True, mode=0o700)
    return deep


def test_a_message_and_open_files_arrive_also_in_a_deep_folder(folder: Path, tmp_path: Path) -> None:
    with listen_in(folder) as listener, connect_to(folder) as link, (tmp_path / "out").open("w") as out:
        threading.Thread(target=send_text, args=(link, "ü" * 200_000, (out.fileno(),))).start()
        theirs, _ = listener.accept()
        with theirs:
            received = receive_text(theirs)
            assert received is not None
            text, files = received
            assert text == "ü" * 200_000
            os.write(files[0], b"by another")
            os.close(files[0])
        assert (tmp_path / "out").read_text() == "by another"
        assert receive_text(link) is None


def test_a_folder_that_others_may_look_into_is_not_used(folder: Path) -> None:
    folder.chmod(0o750)
    with pytest.raises(Stranger):
        listen_in(folder)
    with pytest.raises(Stranger):
        connect_to(folder)


def test_a_link_to_a_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(OSError, match="link"):
        listen_in(tmp_path / "link")


def test_who_has_left_is_seen_once_all_is_read() -> None:
    one, other = socket.socketpair()
    other.settimeout(60.0)
    with other:
        assert not has_left(other)
        send_text(one, "said")
        one.close()
        assert not has_left(other)
        assert receive_text(other) == ("said", [])
        assert has_left(other)


def test_what_is_torn_is_an_error(folder: Path) -> None:
    one, other = socket.socketpair()
    with other:
        with one:
            one.sendall(b"\0\0\0\x09four")
        with pytest.raises(ConnectionResetError):
            receive_text(other)
