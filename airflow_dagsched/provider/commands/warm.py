"""``airflow dagsched warm ...``: which applications of this user stay on this machine, and their end."""

from __future__ import annotations

import sys
from typing import Any

from airflow_dagsched.launch.protocol.printable import format_duration
from airflow_dagsched.launch.warm.about import ENDED, FOLDER
from airflow_dagsched.launch.warm.messages import Status
from airflow_dagsched.launch.warm.serving import AT_WORK
from airflow_dagsched.provider.spec.configuration import read_cache_dir
from airflow_dagsched.provider.warm.applications import Application, ask_status, list_applications, tell_end

SHOWN = 5
"""Of those that have ended."""


def list_warm(args: Any) -> None:
    """Print one line an application."""
    found = list(list_applications(read_cache_dir() / FOLDER))
    for each in found:
        print(describe_application(each, ask_status(each)))
    if not found:
        print("no application is warm on this machine")
    ended = read_cache_dir() / FOLDER / ENDED
    for line in ended.read_text("utf-8").splitlines()[-SHOWN:] if ended.exists() else ():
        print(f"ended: {line}")


def stop(args: Any) -> None:
    """Tell applications to end: those named, else all."""
    found = {each.name: each for each in list_applications(read_cache_dir() / FOLDER)}
    unknown = [name for name in args.names if name not in found]
    if unknown:
        sys.exit(f"no warm application {', '.join(unknown)} on this machine: airflow dagsched warm list")
    for name in args.names or found:
        standing = tell_end(found[name], "somebody told it to", at_once=args.now)
        is_at_work = standing is not None and standing.state in AT_WORK and not args.now
        print(f"{name}: ends {'when its run has ended' if is_at_work else 'now'}")


def describe_application(application: Application, standing: Status | None) -> str:
    """One line about it."""
    if standing is None:
        return f"{application.name}  {application.about.label}  starts, or does not answer"
    left = "" if standing.ends_in_s is None else f", ends in {format_duration(standing.ends_in_s)}"
    heap = f", {standing.heap_mb} MiB in use" if standing.heap_mb else ""
    runs = f"{standing.runs} run{'' if standing.runs == 1 else 's'}"
    return (
        f"{application.name}  {application.about.label}  {standing.application or '-'}  {standing.state} for "
        f"{format_duration(standing.since_s)}, {runs}{heap}{left}"
    )
