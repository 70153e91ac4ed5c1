"""``dagsched stream ...``: what can be asked of a streaming flow's log, without Airflow or Spark."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

REPORTS = "text", "json"
LOG = "log"
"""Folder of the records in a flow's folder."""


def add_stream_commands(commands: Any) -> None:
    """Add ``stream`` and its own commands to those of the parser."""
    stream = commands.add_parser("stream", help="look at the log of a streaming flow")
    asked = stream.add_subparsers(required=True, metavar="COMMAND")
    checking = asked.add_parser("check", help="list every violation of a log, and whose each window is")
    checking.add_argument("log", metavar="LOG", type=Path, help="folder of the records, or of the flow")
    checking.add_argument("--format", choices=REPORTS, default="text")
    checking.set_defaults(run=_run_check)


def _run_check(options: argparse.Namespace) -> int:
    from airflow_dagsched.switch.checking.check_log import check_log
    from airflow_dagsched.switch.checking.report import write_json, write_text

    checked = check_log(_find_log(options.log))
    sys.stdout.write((write_text if options.format == "text" else write_json)(checked))
    return 1 if checked.violations else 0


def _find_log(folder: Path) -> Path:
    return folder / LOG if (folder / LOG).is_dir() else folder
