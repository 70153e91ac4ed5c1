"""What ``airflow dagsched ...`` does."""

from __future__ import annotations

import sys
import time
from argparse import Namespace

from airflow.sdk.configuration import conf

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.retention import expired, remove
from airflow_dagsched.model.codec import encode
from airflow_dagsched.plan.explain import explain
from airflow_dagsched.plan.picture import as_dot
from airflow_dagsched.provider.hook import PlannerHook, dataflows
from airflow_dagsched.provider.sizing import declared_by
from airflow_dagsched.provider.work_dir import default_work_dir

DAY_S = 86_400.0


def plan(args: Namespace) -> None:
    """Print the plan of each dataflow of a DAG, on the cluster its connection names."""
    from airflow.utils.cli import get_bagged_dag

    flows = list(dataflows(get_bagged_dag(None, args.dag_id)))
    if not flows:
        sys.exit(f"DAG {args.dag_id!r} has no dataflow")
    for flow in flows:
        try:
            hook = PlannerHook(args.conn_id or flow.conn_id)
            planned = hook.plan(flow, hook.cluster(declared_by(flow.cluster)))
        except DagschedError as error:
            sys.exit(str(error))
        print(PRINTERS[args.format](planned))


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


PRINTERS = {"text": explain, "dot": as_dot, "json": lambda planned: encode(planned).decode()}
