"""The command ``dagsched``: makes and checks plans from files, without Airflow or Spark.

Exit codes: 0 fine, 1 the plan has violations, 2 bad input (one line on stderr), 3 does not fit.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from airflow_dagsched.errors import DagschedError, DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import pretty, read
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.model.validate import validate, validate_cluster
from airflow_dagsched.plan.check import check
from airflow_dagsched.plan.explain import as_dot, explain
from airflow_dagsched.plan.informed import informed
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from airflow_dagsched.plan.values import Plan

FINE, VIOLATIONS, BAD_INPUT, DOES_NOT_FIT = range(4)
LOCAL_MEMORY_MB = 4096
PLACEMENTS = ("first_fit",)
FORMATS = {"json": pretty, "text": explain, "dot": as_dot}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as for bad input of any other kind."""
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except DoesNotFit as error:
        return _refused(error, DOES_NOT_FIT)
    except InvalidInput as error:
        return _refused(error, BAD_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE


def _refused(error: DagschedError, code: int) -> int:
    print(" ".join(str(error).split()), file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dagsched", description="Plans a DAG of PySpark steps as few Spark applications.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    planning = commands.add_parser("plan", help="print a plan of a dataflow on a cluster")
    planning.add_argument("dataflow", metavar="DATAFLOW.json")
    planning.add_argument("--cluster", metavar="CLUSTER.json", help="default: this machine as one local worker")
    planning.add_argument("--settings", metavar="SETTINGS.json")
    planning.add_argument("--state", metavar="STATE.json", help="measured values replace estimates")
    planning.add_argument("--placement", metavar="POLICY", help=f"one of: {', '.join(PLACEMENTS)}")
    planning.add_argument("--format", choices=tuple(FORMATS), default="json")
    planning.set_defaults(run=_plan)
    checking = commands.add_parser("check", help="list every violation of a plan")
    checking.add_argument("plan", metavar="PLAN.json")
    checking.add_argument("dataflow", metavar="DATAFLOW.json")
    checking.add_argument("cluster", metavar="CLUSTER.json")
    checking.set_defaults(run=_check)
    return parser


def _plan(options: argparse.Namespace) -> int:
    if options.placement and options.placement not in PLACEMENTS:
        known = ", ".join(PLACEMENTS)
        raise InvalidInput("dagsched plan", "--placement", f"no policy is called {options.placement!r}, only: {known}")
    dataflow = _dataflow(options.dataflow)
    cluster = _cluster(options.cluster) if options.cluster else _this_machine()
    settings = read(Settings, options.settings) if options.settings else DEFAULTS
    if options.state:
        dataflow, cluster = informed(dataflow, cluster, read(State, options.state), settings=settings)
    try:
        made = plan(dataflow, cluster, settings)
    except InvalidInput as error:  # cluster and settings are checked: it is the dataflow's
        raise InvalidInput(options.dataflow, error.field, error.rule) from error
    sys.stdout.write(FORMATS[options.format](made))
    return FINE


def _check(options: argparse.Namespace) -> int:
    violations = check(read(Plan, options.plan), _dataflow(options.dataflow), _cluster(options.cluster))
    for violation in violations:
        print(violation)
    return VIOLATIONS if violations else FINE


def _dataflow(path: str) -> Dataflow:
    return validate(read(Dataflow, path), path)


def _cluster(path: str) -> Cluster:
    return validate_cluster(read(Cluster, path), path)


def _this_machine() -> Cluster:
    cores = os.cpu_count() or 1
    print(f"no --cluster: planned for one local worker, {cores} cores, {LOCAL_MEMORY_MB} MiB", file=sys.stderr)
    worker = Worker(id="local", host="localhost", cores=cores, memory_mb=LOCAL_MEMORY_MB)
    return Cluster(manager="local", workers=(worker,))
