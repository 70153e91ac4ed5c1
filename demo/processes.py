"""Start a program that starts others, and stop all of them, whatever became of the ones in between.

A program gets a session of its own. What belongs to it is everything in that session, which an orphan
does not leave when its parent dies, and everything below the program, which a child that made a session
of its own does not leave. Both are stopped by process id.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil


def start(command: Sequence[str], env: Mapping[str, str], log: Path, cwd: Path) -> subprocess.Popen[bytes]:
    """Start ``command`` in a session of its own, its output appended to ``log``."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def family(leader: int) -> list[psutil.Process]:
    """All living processes of the session that ``leader`` made, and all below them."""
    members = {process.pid: process for process in psutil.process_iter() if _session(process.pid) == leader}
    for process in list(members.values()):
        members.update({child.pid: child for child in _children(process)})
    return list(members.values())


def stop(program: subprocess.Popen[bytes], grace_s: float = 8.0) -> None:
    """End ``program`` and its family: asked first, killed after ``grace_s`` seconds."""
    end_all(lambda: family(program.pid), grace_s)
    program.wait()


@contextmanager
def ended_at_exit(word: str, grace_s: float = 20.0) -> Iterator[None]:
    """At the end of the block end all programs whose command line names ``word``, and their families."""
    try:
        yield
    finally:
        end_all(lambda: _find_named(word), grace_s)


def end_all(find: Callable[[], Iterable[psutil.Process]], grace_s: float) -> None:
    """End what ``find`` finds, also what comes meanwhile: asked first, killed after ``grace_s`` seconds."""
    members = set(find())
    _signal(members, kill=False)
    psutil.wait_procs(members, timeout=grace_s)
    while living := _living({*members, *find()}):
        _signal(living, kill=True)
        psutil.wait_procs(living, timeout=1.0)


def _find_named(word: str) -> set[psutil.Process]:
    named = [each for each in psutil.process_iter(["cmdline"]) if word in " ".join(each.info["cmdline"] or ())]
    leaders = {_session(each.pid) for each in named} - {None, os.getsid(0)}
    return {each for leader in leaders if leader for each in family(leader)}


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _living(processes: set[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def _signal(processes: Iterable[psutil.Process], *, kill: bool) -> None:
    for process in processes:
        try:
            if kill:
                process.kill()
            else:
                process.terminate()
        except psutil.NoSuchProcess:
            continue
