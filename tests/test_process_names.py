"""Whether a process is gone, of real ones; zombies and those of another machine included."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from airflow_dagsched.process_names import is_gone, name_process

ME = name_process(os.getpid())
NEVER_ENDS = [sys.executable, "-c", "import sys; sys.stdin.read()"]


def test_a_process_is_gone_once_it_was_killed():
    """Also before it was buried, and then its number may be another's."""
    with subprocess.Popen(NEVER_ENDS, stdin=subprocess.PIPE) as child:
        name = name_process(child.pid)
        assert not is_gone(name)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(name), "it waits to be buried"
    assert is_gone(name)
    assert name_process(child.pid) == ""


def test_another_with_its_number_is_another():
    space, number, began = ME.rsplit("/", 2)
    assert not is_gone(ME)
    assert is_gone(f"{space}/{number}/{int(began) - 1}")


@pytest.mark.parametrize(
    "name",
    ["", "/", "4711/1", "another boot/1/1", f"{ME}/1", ME.rpartition("/")[0], "a/²/1"],
    ids=["none", "empty", "too short", "another boot", "too long", "no beginning", "no number"],
)
def test_of_what_cannot_be_seen_from_here_nothing_is_said(name: str):
    assert not is_gone(name)


def test_no_number_of_a_process_is_too_large():
    space, _, began = ME.rsplit("/", 2)
    assert not is_gone(f"{space}/{2**70}/{began}")
