"""``dagsched stream ...``: what can be asked of a streaming flow's log, without Airflow or Spark."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_dagsched.errors import DagschedError, InvalidInput

FINE, VIOLATIONS = range(2)
REPORTS = "text", "json"
LOG = "log"
"""Folder of the records in a flow's folder."""


def add_stream_commands(commands: Any) -> None:
    """Add ``stream`` and its own commands to those of the parser."""
    stream = commands.add_parser("stream", help="look at the log of a streaming flow")
    asked = stream.add_subparsers(required=True, metavar="COMMAND")
    _add_command(asked, "status", "say how a flow is, and what it waits for", _run_status)
    _add_command(asked, "log", "print the records of a flow, the newest last", _run_log)
    compare = _add_command(asked, "compare", "say in which windows two graphs differ", _run_compare)
    compare.add_argument("--step", help="the step that writes them, where several do")
    _add_command(asked, "check", "list every violation of a log, and whose each window is", _run_check)


def _add_command(asked: Any, name: str, told: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = asked.add_parser(name, help=told)
    command.add_argument("log", metavar="LOG", type=Path, help="folder of the flow, or of its records")
    command.add_argument("--format", choices=REPORTS, default="text")
    command.set_defaults(run=run)
    return command


def _run_status(options: argparse.Namespace) -> int:
    from airflow_dagsched.switch.log.status import describe_status, read_status, tell_status

    with _blame_log(options.log):
        status = read_status(_find_log(options.log).parent, time.time())
    sys.stdout.write(
        tell_status(status) if options.format == "text" else f"{json.dumps(describe_status(status), indent=2)}\n"
    )
    return FINE


def _run_log(options: argparse.Namespace) -> int:
    from airflow_dagsched.switch.log.flow_log import FlowLog
    from airflow_dagsched.switch.records import encode_record
    from airflow_dagsched.switch.say import tell_line

    with _blame_log(options.log):
        records = FlowLog(_find_log(options.log)).read()
    for each in records:
        print(tell_line(each) if options.format == "text" else encode_record(each))
    return FINE


def _run_compare(options: argparse.Namespace) -> int:
    from airflow_dagsched.switch.comparing.flow_comparison import compare_flow
    from airflow_dagsched.switch.comparing.say_comparison import describe_comparison, tell_comparison
    from airflow_dagsched.switch.reasons import Reason
    from airflow_dagsched.switch.say import tell_reason

    with _blame_log(options.log):
        found = compare_flow(_find_log(options.log).parent, options.step)
    if isinstance(found, Reason):
        raise InvalidInput(str(options.log), "", f"nothing is compared: {tell_reason(found)}")
    sys.stdout.write(
        tell_comparison(found) if options.format == "text" else f"{json.dumps(describe_comparison(found), indent=2)}\n"
    )
    return FINE


def _run_check(options: argparse.Namespace) -> int:
    from airflow_dagsched.switch.checking.check_log import check_log
    from airflow_dagsched.switch.checking.report import write_json, write_text

    checked = check_log(_find_log(options.log))
    sys.stdout.write((write_text if options.format == "text" else write_json)(checked))
    return VIOLATIONS if checked.violations else FINE


@contextmanager
def _blame_log(folder: Path) -> Iterator[None]:
    """A log that is no log, or that is damaged, is bad input."""
    from airflow_dagsched.switch.log.numbered_files import list_numbers

    log = _find_log(folder)
    if not log.is_dir():
        raise InvalidInput(str(folder), "", "is no folder of a flow")
    try:
        if not any(list_numbers(log)):
            raise InvalidInput(str(folder), "", "holds no record of a log")
        yield
    except InvalidInput:
        raise
    except DagschedError as error:
        raise InvalidInput(str(folder), "", f"{str(error).splitlines()[0]} (see dagsched stream check)") from None
    except OSError as error:
        raise InvalidInput(str(error.filename or folder), "", f"cannot be read: {error.strerror}") from None


def _find_log(folder: Path) -> Path:
    """Of a flow's folder, which need not be absolute."""
    return (folder / LOG if (folder / LOG).is_dir() else folder).absolute()
