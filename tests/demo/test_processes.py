"""A program, what it starts, and what that starts: all of it goes.

program ── child                      same session
   │  └──── orphan's parent (ends) ── orphan
   └──────── daemon                   a session of its own
"""

import os
import sys
from pathlib import Path

import psutil
import pytest

from demo.processes import family, start, stop
from demo.rest import until

PROGRAM = """
import subprocess, sys, time
SLEEP = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.{on_term}); time.sleep(600)"]
subprocess.Popen(SLEEP)
subprocess.run([sys.executable, "-c", f"import subprocess; subprocess.Popen({{SLEEP!r}})"])
subprocess.Popen(SLEEP, start_new_session=True)
time.sleep(600)
"""


@pytest.mark.parametrize("on_term", ["SIG_DFL", "SIG_IGN"])
def test_stop_ends_the_whole_family(tmp_path: Path, on_term: str) -> None:
    """Children, orphans and daemons end, also those that will not when they are asked."""
    command = [sys.executable, "-c", PROGRAM.format(on_term=on_term)]
    program = start(command, os.environ, tmp_path / "log", tmp_path)
    members = until("four processes", lambda: found if len(found := family(program.pid)) == 4 else None, 30.0)
    stop(program, grace_s=0.5)
    assert not [member for member in members if member.is_running() and member.status() != psutil.STATUS_ZOMBIE]
    assert program.returncode is not None


def test_others_stay(tmp_path: Path) -> None:
    """The family of one program holds nothing of another's, nor of ours."""
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    one, other = (start(sleep, os.environ, tmp_path / "log", tmp_path) for _ in range(2))
    stop(one)
    assert [process.pid for process in family(other.pid)] == [other.pid]
    stop(other)
    assert os.getpid() not in {process.pid for process in family(other.pid)}
