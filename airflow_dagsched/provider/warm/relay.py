"""The program in spark-submit's place: ``python relay.py REQUEST``. It stands for one run of a warm application.

::

    launch task ──pipe── relay ──socket── host      the run writes to the pipe itself
                              ──tail──── output     what Java and the host print meanwhile

Its exit code is the run's. Where the application goes with the run it is spark-submit's.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

if __name__ == "__main__":
    # Python puts a script's own folder on the path, where our files would pass for top-level modules.
    here = Path(__file__).resolve()
    sys.path[:] = [str(here.parents[3]), *(path for path in sys.path if Path(path).resolve() != here.parent)]

import socket

from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.launch.warm.about import ABOUT, OUTPUT, About
from airflow_dagsched.launch.warm.identity import OF_A_TASK
from airflow_dagsched.launch.warm.messages import (
    Ended,
    Refused,
    RunAsked,
    StopAsked,
    Taken,
    decode_message,
    encode_message,
)
from airflow_dagsched.private_socket import NAME, connect_to, receive_text, send_text
from airflow_dagsched.process_names import is_gone, name_process
from airflow_dagsched.provider.warm.applications import choose_name, list_applications, tell_end
from airflow_dagsched.provider.warm.request import Request, read_request

LOOK_S = 0.1
START_LOOK_S = 0.05
LOST = 1
"""Exit code where nobody says how the run ended."""
LEAVES_WITHIN_S = 10.0
"""Seconds a host has that ends with its run."""


class Relay:
    """One run's."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._output: BinaryIO | None = None
        self._folder: Path | None = None
        """Of the application that has taken the run."""
        self._host: subprocess.Popen[bytes] | None = None
        """The application, where this run started it."""
        self._told = False
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, self._note_told)

    def _note_told(self, *_: object) -> None:
        self._told = True

    def run(self) -> int:
        """Have the run served; its exit code."""
        link = self._find_warm() or self._start_host()
        return self._leave(None) if link is None else self._follow(link)

    # An application

    def _find_warm(self) -> socket.socket | None:
        """A connection to one that has taken the run; None: there is none."""
        wanted = self._request.wanted
        for each in list_applications(Path(self._request.folder)):
            if not wanted.fits(each.about.wanted):
                continue
            if wanted.code != each.about.wanted.code:
                tell_end(each, "its code, or what its site has for it, is no longer what runs")
                continue
            if (link := self._hand_over(each.folder)) is not None:
                print(f"dagsched: warm application {each.name}, of {each.about.label}", flush=True)
                return link
        return None

    def _hand_over(self, folder: Path) -> socket.socket | None:
        """A connection to the host there, if it takes the run."""
        link = None
        try:
            output = (folder / OUTPUT).open("rb")
            link = connect_to(folder, LEAVES_WITHIN_S)
            send_text(link, encode_message(self._describe_run()), (1, 2))
            received = receive_text(link)
            answer = decode_message(received[0]) if received is not None else Refused("it has closed")
        except (OSError, ValueError):
            answer = Refused("nobody answers")
        if isinstance(answer, Taken) and link is not None:
            self._output, self._folder = self._output or output, folder
            return link
        if link is not None:
            link.close()
        return None

    def _describe_run(self) -> RunAsked:
        request = self._request
        return RunAsked(request.manifest, dict(os.environ), str(Path.cwd()), request.wanted.sizes, request.terms.idle_s)

    def _start_host(self) -> socket.socket | None:
        """A connection to a new one; None: it ended before it came up."""
        folder = self._make_folder()
        with os.fdopen(
            os.open(folder / OUTPUT, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600), "ab"
        ) as out:
            self._host = subprocess.Popen(
                [*self._request.command, str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # Java's is that of the processes of Python functions, in all runs.
                env={name: value for name, value in os.environ.items() if not name.startswith(OF_A_TASK)},
            )
        self._output = (folder / OUTPUT).open("rb")
        while not (folder / NAME).exists() or (link := self._hand_over(folder)) is None:
            if self._told or self._is_alone() or self._host.poll() is not None:
                return None
            self._pass_output()
            time.sleep(START_LOOK_S)
        return link

    def _make_folder(self) -> Path:
        request, folder = self._request, Path(self._request.folder, choose_name())
        folder.mkdir(mode=0o700)
        about = About(
            label=request.label,
            connection=request.connection,
            began=time.time(),
            wanted=request.wanted,
            terms=request.terms,
            starter=name_process(os.getpid()),
            owner=request.owner,
        )
        write_file(folder / ABOUT, about.to_json().encode(), 0o600)
        return folder

    # The run

    def _follow(self, link: socket.socket) -> int:
        """Until the run has ended; its exit code."""
        link.settimeout(None)
        has_stopped, code = False, None
        with selectors.DefaultSelector() as selector, link:
            selector.register(link, selectors.EVENT_READ)
            while True:
                ready = selector.select(LOOK_S)
                self._pass_output()
                if self._told and not has_stopped:
                    has_stopped = True
                    with suppress(OSError):
                        send_text(link, encode_message(StopAsked()))
                if self._is_alone():
                    return LOST  # the host sees that this connection is closed
                if not ready:
                    continue
                code = _hear_end(link)
                break
        if code is None or code != 0:
            return self._leave(code)
        self._pass_output()
        return code

    def _is_alone(self) -> bool:
        """Whether the launch task's process is gone."""
        return is_gone(self._request.launcher)

    def _leave(self, code: int | None) -> int:
        """The application goes with the run: wait for it, and say why. The exit code."""
        if self._host is not None:
            if self._told or self._is_alone():
                _end_group(self._host)
            with suppress(subprocess.TimeoutExpired):
                self._host.wait(LEAVES_WITHIN_S)
        else:
            self._await_end()
        self._pass_output()
        if code is not None:
            return code
        ended = self._host.poll() if self._host is not None else None
        return LOST if not ended else ended if ended > 0 else 128 - ended

    def _await_end(self) -> None:
        """Until an application that another run started is gone: who tries again shall not meet what it still does."""
        until = time.monotonic() + LEAVES_WITHIN_S
        while self._folder is not None and (self._folder / NAME).exists() and time.monotonic() < until:
            time.sleep(START_LOOK_S)

    def _pass_output(self) -> None:
        """What Java and the host have printed since."""
        if self._output is not None and (text := self._output.read()):
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()


def _hear_end(link: socket.socket) -> int | None:
    """The exit code of the run; None: the host is gone."""
    try:
        received = receive_text(link)
        message = decode_message(received[0]) if received is not None else None
    except (OSError, ValueError):
        return None
    return message.code if isinstance(message, Ended) else None


def _end_group(host: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(host.pid, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(Relay(read_request(Path(sys.argv[1]))).run())
