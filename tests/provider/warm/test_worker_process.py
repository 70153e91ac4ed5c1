"""Whose end ends a warm application.

::

    executor's parent ── worker ── task        the parent, which a person stops
    (init)            ── worker ── task        the worker
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from airflow_dagsched.process_names import is_gone, name_process
from airflow_dagsched.provider.warm.worker_process import find_owner, read_parent

SLEEP = "import time; time.sleep(600)"
START = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1], *sys.argv[2:]])"
WAIT = f"{START}.wait()"


@pytest.fixture
def chain() -> Iterator[tuple[psutil.Process, ...]]:
    """Parent, worker, task."""
    with subprocess.Popen([sys.executable, "-c", WAIT, WAIT, SLEEP]) as started:
        parent = psutil.Process(started.pid)
        until = time.monotonic() + 30.0
        while len(family := parent.children(recursive=True)) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        yield parent, *family
        for each in (parent, *family):
            with suppress(psutil.NoSuchProcess):
                each.kill()


def test_it_is_the_process_above_the_one_that_supervises_the_task(chain: tuple[psutil.Process, ...]) -> None:
    parent, _, task = chain
    owner = find_owner(task.pid)
    assert owner == name_process(parent.pid)
    assert not is_gone(owner)
    parent.kill()
    parent.wait(30.0)
    assert is_gone(owner)


def test_a_worker_that_nobody_started_is_its_own(chain: tuple[psutil.Process, ...]) -> None:
    """Its parent has ended: it is the system's."""
    parent, worker, task = chain
    parent.kill()
    parent.wait(30.0)
    if read_parent(worker.pid) == 1:
        assert find_owner(task.pid) == name_process(worker.pid)
