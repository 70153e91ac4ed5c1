"""Names of processes, by which another one of the same machine sees that a process is gone: no lease need age for that.

::

    9d1c…/pid:[4026531836]/time:[4026531834]/4711/88231
    the kernel's boot, the processes that see each other, their clock / number / when it began, as the kernel counts
"""

from __future__ import annotations

import os
from pathlib import Path

SPACES = ("pid", "time")


def name_process(pid: int) -> str:
    """A name that no other process ever has; empty where the kernel tells too little for that."""
    space, began = _name_space(), read_beginning(pid)
    return f"{space}/{pid}/{began}" if space and began else ""


def is_gone(name: str) -> bool:
    """Whether the process surely runs no more. False also of one that can't be seen from here: on another machine, or
    in another container.
    """
    space, number, began = ["", "", *name.rsplit("/", 2)][-3:]
    if not space or space != _name_space() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):  # another user's, of which this one may not be told more
        return False
    return read_beginning(int(number)) != began


def read_beginning(pid: int) -> str:
    """When the process began, by its kernel's count; empty if there is none, or one that only waits to be buried."""
    try:
        # The name, in brackets, may hold anything: what counts is behind the last one.
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _name_space() -> str:
    """What all processes have in common whose numbers, and beginnings, can be compared; empty where unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return "/".join((boot, *(str(Path(f"/proc/self/ns/{each}").readlink()) for each in SPACES)))
    except OSError:
        return ""
