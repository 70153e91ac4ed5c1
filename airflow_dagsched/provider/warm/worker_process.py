"""The process whose end ends a warm application: Airflow's worker.

    scheduler, or celery ── worker of the executor ── launch task
    (watched)               (supervises the task)

Workers of executors come and go while Airflow works; their parent is what a person stops.
"""

from __future__ import annotations

from pathlib import Path

from airflow_dagsched.process_names import name_process


def find_owner(pid: int) -> str:
    """Name of the process above the one that supervises process ``pid``; of that one where it has none of this user;
    empty where there is none either.
    """
    supervisor = read_parent(pid)
    above = read_parent(supervisor)
    return name_process(above if _is_own(above, pid) else supervisor) if _is_own(supervisor, pid) else ""


def read_parent(pid: int) -> int:
    """0 where there is none that can be seen."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def _is_own(pid: int, mine: int) -> bool:
    """Whether it is a process of the same user, and no system's first one."""
    try:
        return pid > 1 and Path(f"/proc/{pid}").stat().st_uid == Path(f"/proc/{mine}").stat().st_uid
    except OSError:
        return False
