"""The host's loop: it waits for runs, forks them, and knows nothing of Spark itself.

It has one thread, so that it may fork at any moment, and all that a driver program imports is loaded in it once.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import shutil
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_dagsched.launch.warm.about import ENDED, OUTPUT, About, read_about
from airflow_dagsched.launch.warm.identity import select_common
from airflow_dagsched.launch.warm.messages import (
    EndAsked,
    Ended,
    Message,
    Refused,
    RunAsked,
    Status,
    StatusAsked,
    StopAsked,
    Taken,
    decode_message,
    encode_message,
)
from airflow_dagsched.launch.warm.serving import Command, Event, Serving, take_event
from airflow_dagsched.private_socket import check_peer, has_left, listen_in, receive_text, send_text
from airflow_dagsched.process_names import is_gone, name_process
from airflow_dagsched.spark.driver.program import FAILED, OK, STOPPED, Source, main
from airflow_dagsched.spark.warm_driver.attached import attach_session, let_go, remove_rest
from airflow_dagsched.spark.warm_driver.children import Child, fork_child, see_end
from airflow_dagsched.spark.warm_driver.idle_mark import IdleMark
from airflow_dagsched.spark.warm_driver.keeper import run_keeper
from airflow_dagsched.spark.warm_driver.orders import Answer, Order, decode_answer, encode_order

LOOK_S = 0.25
MOST_ENDS, LONGEST_REASON = 100, 500
"""That are remembered, and letters of why; what Java says of an error may be pages."""
ANSWER_WITHIN_S = 2.0
"""Seconds a process of this user has to say what it wants, and the keeper to stop Spark."""


JAVA_WITHIN_S = 20.0
"""Seconds that Java has to end, once nobody needs it."""


@dataclass
class Asked:
    """A run, and whoever asked for it."""

    link: socket.socket
    run: RunAsked
    files: list[int]

    def close(self) -> None:
        """Nobody needs it any more."""
        self.link.close()
        for each in self.files:
            with suppress(OSError):
                os.close(each)


class Host:
    """One warm application's."""

    def __init__(self, folder: Path, about: About) -> None:
        self.folder = folder
        self.about = about
        self.terms = about.terms
        """As the last run has them."""
        self.serving = Serving("waiting", time.monotonic())
        self.asked: Asked | None = None
        self.next_run: Callable[[], int] | None = None
        """In a run's own process: what it does there."""
        self.has_stopped = False
        """Whether Spark has, in the end."""
        self.java = os.getppid()
        self._code = FAILED
        self._added: dict[str, str] | None = None
        """What spark-submit added to the environment."""
        self._answer = Answer()
        self._child: Child | None = None
        self._told = False
        self._mark = IdleMark(folder)
        self._commands: Mapping[Command, Callable[[], None]] = {
            "take": self._take_run,
            "prepare": self._prepare,
            "fork": self._fork_run,
            "report": self._report_end,
            "clean": lambda: self._order(Order("clean")),
            "kill": self._kill_run,
            "end": self._end,
        }
        self._keeper_link, theirs = socket.socketpair()
        self._keeper = fork_child(lambda: self._begin_keeper(theirs))
        theirs.close()
        self._listener = listen_in(folder)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._keeper_link, selectors.EVENT_READ, self._hear_keeper)
        signal.signal(signal.SIGTERM, self._note_told)
        signal.signal(signal.SIGHUP, self._note_told)
        signal.signal(signal.SIGINT, self._note_told)

    def _begin_keeper(self, link: socket.socket) -> None:
        self._keeper_link.close()  # else its end would not be seen there
        run_keeper(link, self.about.terms.most_heap)

    def run(self) -> None:
        """Serve until the application ends, or, in a run's own process, until there is ``next_run``."""
        while not self._is_over():
            for key, _ in self._selector.select(LOOK_S):
                # What came before it may have been the end, or have let go of it.
                if not self._is_over() and key in self._selector.get_map().values():
                    key.data()
            if not self._is_over():
                self._look()

    def _is_over(self) -> bool:
        return self.serving.state == "ending" or self.next_run is not None

    # What happens

    def _happen(self, event: Event, reason: str = "") -> None:
        self.serving, commands = take_event(self.serving, event, time.monotonic(), self.terms, reason)
        for command in commands:
            self._commands[command]()
            if self.next_run is not None:
                return
        if self.serving.state == "ending":
            return
        self._listen()
        if self.serving.state == "idle":
            self._mark.put()

    def _look(self) -> None:
        """At what nobody tells."""
        now, deadline = time.monotonic(), self.serving.find_deadline(self.terms)
        if self._told:
            self._happen("told_at_once", "it was told to end")
        elif os.getppid() != self.java:
            self._happen("told_at_once", "its Java is gone")
        elif deadline is not None and now >= deadline:
            self._happen("overdue", f"nobody came for {now - self.serving.since:.0f} s")
        elif self.serving.state == "idle" and (later := self._mark.count_later()) >= self.terms.most_idle:
            self._happen("told", f"{later} others have waited for less long")
        elif self.about.owner and is_gone(self.about.owner):
            self._happen("told", "Airflow's worker is gone")
        elif self.serving.state == "waiting" and is_gone(self.about.starter):
            self._happen("told", "whoever started it is gone")
        elif self.serving.state == "cleaning" and now > self.serving.since + 60.0:
            self._happen("unfit", "what the last run left cannot be removed")

    def _accept(self) -> None:
        link, _ = self._listener.accept()
        link.settimeout(ANSWER_WITHIN_S)
        try:
            peer = check_peer(link)
            received = receive_text(link)
            message = decode_message(received[0]) if received is not None else None
        except (OSError, ValueError):
            link.close()
            return
        if isinstance(message, RunAsked):
            self._take_asked(Asked(link, message, received[1] if received is not None else []), peer)
            return
        with link:
            if isinstance(message, StatusAsked):
                _send(link, self._describe())
            elif isinstance(message, EndAsked):
                _send(link, self._describe())
                self._happen("told_at_once" if message.at_once else "told", message.reason)

    def _take_asked(self, asked: Asked, peer: int) -> None:
        # While this application was being cleaned it waited for too long: its end would be taken for that of a run.
        if has_left(asked.link):
            asked.close()
            return
        if self.serving.state not in ("waiting", "idle") or len(asked.files) != 2 or not self._is_for(peer):
            _send(asked.link, Refused("another run is at work, or awaited"))
            asked.close()
            return
        self.asked = asked
        self._selector.register(asked.link, selectors.EVENT_READ, self._hear_relay)
        self._happen("asked")

    def _is_for(self, peer: int) -> bool:
        """Whether a run of that process may be the next: the first one is whoever's who started the application."""
        starter = self.about.starter
        return self.serving.state != "waiting" or not starter or name_process(peer) == starter

    def _hear_relay(self) -> None:
        assert self.asked is not None
        try:
            received = receive_text(self.asked.link)
            message = decode_message(received[0]) if received is not None else None
        except (OSError, ValueError):
            message = None
        if isinstance(message, StopAsked):
            reason = "its run was told to end"
            if self.serving.state == "running" and self._child is not None:
                # The run says its last word, and its end is heard of as any.
                self._child.send_signal(signal.SIGTERM)
            else:
                self._happen("told_at_once", reason)
        elif self.serving.state == "trying":
            # No relay waits for longer than its own time: that is what a Spark has that does not answer.
            self._happen("left", "whoever asked has gone elsewhere while its Spark was tried")
        else:
            self._happen("left", "whoever followed its run is gone")

    def _hear_keeper(self) -> None:
        try:
            received = receive_text(self._keeper_link)
        except OSError:
            received = None
        if received is None:
            self._happen("told_at_once", "the process that held its session is gone")
            return
        self._answer = decode_answer(received[0])
        if self.serving.state == "preparing":
            self._happen("prepared")
        elif self.serving.state == "trying":
            self._happen("unfit" if self._answer.trouble else "prepared", self._answer.trouble)
        elif self.serving.state == "cleaning":
            event: Event = "unfit" if self._answer.trouble else "clean"
            self._happen(event, self._answer.trouble)

    def _hear_end_of_run(self) -> None:
        assert self._child is not None
        self._selector.unregister(self._child.watch)
        # What its steps have started and left; before it is collected, for then its number may be another group's.
        self._child.send_signal(signal.SIGKILL)
        code, self._child = self._child.collect(), None
        if code == OK and not self._answer.trouble:
            self._happen_with("ended", code)
        else:
            self._happen_with("broke", code, f"a run of it ended with exit code {code}")

    def _happen_with(self, event: Event, code: int, reason: str = "") -> None:
        self._code = code
        self._happen(event, reason)

    def _note_told(self, *_: object) -> None:
        self._told = True

    # What is done

    def _order(self, order: Order) -> None:
        with suppress(OSError):  # its end is heard of, too
            send_text(self._keeper_link, encode_order(order))

    def _listen(self) -> None:
        """Unless it is being cleaned: whoever comes then waits, which takes less time than another application."""
        is_listening, is_wanted = self._listener in self._selector.get_map(), self.serving.state != "cleaning"
        if is_wanted and not is_listening:
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        elif is_listening and not is_wanted:
            self._selector.unregister(self._listener)

    def _take_run(self) -> None:
        assert self.asked is not None
        idle_s = self.asked.run.idle_s
        self.terms = replace(self.terms, idle_s=self.terms.idle_s if idle_s is None else idle_s)
        _send(self.asked.link, Taken(self.serving.runs))

    def _prepare(self) -> None:
        assert self.asked is not None
        if self.serving.state == "trying":
            self._mark.remove()
            # What Java has printed until now the relays before this one have read.
            with suppress(OSError):
                os.truncate(self.folder / OUTPUT, 0)
        told = self.asked.run.environment
        if self._added is None:
            common = select_common(os.environ)
            self._added = {name: value for name, value in common.items() if told.get(name) != value}
        self._order(Order("prepare", told, self.asked.run.sizes))

    def _fork_run(self) -> None:
        asked, number = self.asked, self.serving.runs
        assert asked is not None
        assert self._added is not None
        environment = {**asked.run.environment, **self._added}
        lost = self._answer.trouble

        def begin() -> None:
            os.dup2(asked.files[0], 1)
            os.dup2(asked.files[1], 2)
            self._close_files()
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(asked.run.folder)
            self.next_run = lambda: _run_driver(asked.run.manifest, number, lost)

        self._child = fork_child(begin)
        if self._child is not None:
            self._selector.register(self._child.watch, selectors.EVENT_READ, self._hear_end_of_run)

    def _close_files(self) -> None:
        """In a run's own process: what is the host's."""
        self._selector.close()
        self._listener.close()
        self._keeper_link.close()
        if self._keeper is not None:
            os.close(self._keeper.watch)
        if self.asked is not None:
            self.asked.close()

    def _kill_run(self) -> None:
        if self._child is not None:
            self._selector.unregister(self._child.watch)
            self._code = self._child.end()
            self._child = None

    def _report_end(self) -> None:
        if self.asked is not None:
            with suppress(KeyError):
                self._selector.unregister(self.asked.link)
            _send(self.asked.link, Ended(self._code))
            self.asked.close()
            self.asked = None

    def _end(self) -> None:
        """Let go of Spark, and of all that others could find."""
        print(f"dagsched: the warm application ends: {self.serving.reason}", flush=True)
        self._listener.close()
        with suppress(OSError):
            self._keeper_link.settimeout(ANSWER_WITHIN_S)
            send_text(self._keeper_link, encode_order(Order("stop")))
            self.has_stopped = receive_text(self._keeper_link) is not None
        self._keeper_link.close()
        if self._keeper is not None:
            self._keeper.send_signal(signal.SIGKILL)
            self._keeper.collect()
        if self.asked is not None:
            self.asked.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        note_end(self.folder, self.about, self.serving)

    def _describe(self) -> Status:
        now, deadline = time.monotonic(), self.serving.find_deadline(self.terms)
        left = None if deadline is None else max(0.0, deadline - now)
        standing = self.serving
        return Status(
            standing.state, standing.runs, self._answer.application, now - standing.since, left, self._answer.heap_mb
        )


def note_end(folder: Path, about: About, serving: Serving) -> None:
    """Keep a line on why an application ended, for whoever wonders why a launch was cold."""
    reason = " ".join(serving.reason.split())[:LONGEST_REASON]
    line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {folder.name} {about.label}: {serving.runs} runs; {reason}\n"
    with suppress(OSError), folder.with_name(ENDED).open("a+", encoding="utf-8") as file:
        # Several may end at once.
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        before = file.readlines()
        if len(before) >= MOST_ENDS:
            file.truncate(0)
            line = "".join([*before[1 - MOST_ENDS :], line])
        file.write(line)


def _send(link: socket.socket, message: Message) -> None:
    with suppress(OSError):  # whoever it was is gone
        send_text(link, encode_message(message))


def _run_driver(manifest: str, number: int, lost: str) -> int:
    """The driver program, in the application that another process holds; its exit code."""
    try:
        return main([manifest], Source(lambda secrets: attach_session(secrets, lost), let_go, number))
    finally:
        remove_rest()


def run_host(folder: Path) -> int:
    """Serve runs until the application ends; the exit code of this process, which may come to be a run's own."""
    about = read_about(folder)
    if about is None:
        print(f"{folder} is no folder of a warm application")
        return FAILED
    host = Host(folder, about)
    host.run()
    if host.next_run is not None:
        return host.next_run()
    see_end(host.java, JAVA_WITHIN_S)
    # Where Spark goes on, Java would wait for it: another code than 0 ends it all the same.
    return OK if host.has_stopped else STOPPED
