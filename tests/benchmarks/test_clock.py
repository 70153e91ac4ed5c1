"""Processor time of processes that are gone, wherever they were, is counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import clock
from benchmarks.home import CACHE

BURN = "import time\nuntil = time.process_time() + 0.3\nwhile time.process_time() < until: pass"
MEASURE = """
import subprocess, sys, time
from benchmarks.clock import Clock, adopt_orphans
adopt_orphans()
clock = Clock()
leaves = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {sys.argv[1]!r}], start_new_session=True)"
subprocess.run([sys.executable, "-c", leaves], check=True)
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
time.sleep(0.2)
with subprocess.Popen([sys.executable, "-c", sys.argv[1] + "\\ntime.sleep(60)"]) as living:
    time.sleep(float(sys.argv[2]))
    print(clock.read().cpu_s)
    living.kill()
"""


def test_all_that_is_below_counts(tmp_path: Path) -> None:
    """A child that has ended, one that lives, and an orphan in a session of its own: 0.3 s each."""
    command = [sys.executable, "-c", MEASURE, BURN, "6"]
    done = subprocess.run(
        command, env={CACHE: str(tmp_path)}, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert 0.85 <= float(done.stdout) <= 3.0


def test_nothing_is_waited_for_where_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    monkeypatch.setattr(clock, "PATIENCE_S", 0.0)
    clock.wait_until_quiet()
