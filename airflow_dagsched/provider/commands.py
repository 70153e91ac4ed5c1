"""What ``airflow dagsched ...`` does."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk.configuration import conf

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.retention import expired, remove
from airflow_dagsched.model.codec import encode
from airflow_dagsched.plan.pages.page import explain
from airflow_dagsched.plan.pages.picture import as_dot, as_svg
from airflow_dagsched.provider.hook import PlannerHook, dataflows
from airflow_dagsched.provider.work_dir import default_work_dir

if TYPE_CHECKING:
    from airflow_dagsched.provider.dataflow import SparkDataflow
    from airflow_dagsched.provider.tuning import Tuned

DAY_S = 86_400.0


def plan(args: Namespace) -> None:
    """Print the plan of each dataflow of a DAG, on the cluster its connection names."""
    for flow in _flows(args.dag_id):
        try:
            hook = PlannerHook(args.conn_id or flow.conn_id)
            planned = hook.plan(flow, hook.cluster(flow.declared_cluster))
        except DagschedError as error:
            sys.exit(str(error))
        print(PRINTERS[args.format](planned))


def tune(args: Namespace) -> None:
    """Write a plan file for each dataflow of a DAG, by what its runs measured; print what changes."""
    from airflow_dagsched.provider.tuning import tune as tuned

    for flow in _flows(args.dag):
        try:
            found = tuned(flow, PlannerHook(args.conn_id or flow.conn_id), exact=args.exact)
        except DagschedError as error:
            sys.exit(str(error))
        print("\n".join(found.lines))
        print(f"  {'would write' if args.dry_run else 'write'} {found.file}")
        if not args.dry_run:
            _write(found)


def _write(found: Tuned) -> None:
    """The plan file; exits where its folder takes none."""
    try:
        found.write()
    except OSError as error:
        sys.exit(f"{found.file}: cannot be written: {error.strerror}")


def _flows(dag: str) -> list[SparkDataflow]:
    """The dataflows of a DAG, or of all DAGs of a file; exits where there are none."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils.cli import get_bagged_dag

    dags = DagBag(Path(dag)).dags.values() if Path(dag).is_file() else [get_bagged_dag(None, dag)]
    flows = [flow for each in dags for flow in dataflows(each)]
    if not flows:
        sys.exit(f"{dag!r} has no dataflow")
    return flows


def clean(args: Namespace) -> None:
    """Remove runs, events and datasets that are older than the retention."""
    days = conf.getfloat("dagsched", "retention_days", fallback=30.0) if args.days is None else args.days
    for work_dir in args.work_dirs or [default_work_dir()]:
        paths = expired(work_dir, time.time(), days * DAY_S)
        for path in paths:
            print(f"{'would remove' if args.dry_run else 'remove'} {path}")
        if not args.dry_run:
            remove(paths)
        print(f"{work_dir}: {len(paths)} path(s)")


PRINTERS = {"text": explain, "dot": as_dot, "svg": as_svg, "json": lambda planned: encode(planned).decode()}
