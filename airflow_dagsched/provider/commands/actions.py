"""What ``airflow dagsched ...`` does."""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.planning.planned import Planned
from airflow_dagsched.launch.planning.submissions import add_settings
from airflow_dagsched.launch.retention.expiry import find_expired, remove_expired
from airflow_dagsched.launch.retention.inventory import LOCAL, Trouble
from airflow_dagsched.launch.retention.records import strip_scheme
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.plan.report.page import explain_plan
from airflow_dagsched.plan.report.picture import draw_dot, draw_svg
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.commands.answer import print_answer
from airflow_dagsched.provider.commands.bag import find_flows
from airflow_dagsched.provider.commands.dag_plans import plan_flows
from airflow_dagsched.provider.spec.configuration import read_retention_days
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir, parse_local_root
from airflow_dagsched.switch.log.expired import find_expired_streams

if TYPE_CHECKING:
    from airflow_dagsched.plan.plan_types import Plan
    from airflow_dagsched.provider.authoring.dataflow import SparkDataflow
    from airflow_dagsched.provider.commands.tuning import Tuned

DAY_S = 86_400.0


def plan(args: Namespace) -> None:
    """Print the plan of each dataflow of a DAG, as its launches follow it."""
    print_answer(lambda: PRINTERS[args.format](list(map(add_settings, plan_flows(find_flows(args.dag), args)))))


def simulate(args: Namespace) -> None:
    """Run the plan of each dataflow of a DAG on a modelled cluster."""
    print_answer(lambda: "\n".join(_simulate(each, args) for each in plan_flows(find_flows(args.dag), args)))


def _simulate(planned: Planned, args: Namespace) -> str:
    from airflow_dagsched.plan.simulate.report import compare_policies, write_text
    from airflow_dagsched.plan.simulate.values import Conditions, Work

    met = Conditions(noise=args.noise, failures_per_hour=args.failures_per_hour, seed=args.seed)
    work = Work(planned.plan, planned.dataflow)
    return write_text(compare_policies(work, planned.cluster, met, ["plan"], args.runs, planned.settings))


def tune(args: Namespace) -> None:
    """Write a plan file for each dataflow of a DAG, by what its runs measured; print what changes."""
    print_answer(lambda: "\n".join(_tune_flow(flow, args) for flow in find_flows(args.dag)))


def _tune_flow(flow: SparkDataflow, args: Namespace) -> str:
    from airflow_dagsched.provider.commands.tuning import tune as tuned

    found = tuned(flow, PlannerHook(args.conn_id or flow.declared.conn_id), exact=args.exact)
    if not args.dry_run:
        _write_plan_file(found)
    return "\n".join([*found.lines, f"  {'would write' if args.dry_run else 'wrote'} {found.file}"])


def _write_plan_file(found: Tuned) -> None:
    """The plan file. Raises :class:`InvalidInput` where its folder takes none."""
    try:
        found.write()
    except OSError as error:
        raise InvalidInput(str(found.file), "", f"cannot be written: {error.strerror}") from error


def clean(args: Namespace) -> None:
    """Remove runs, events and datasets that are older than the retention."""
    print_answer(lambda: "\n".join(_clean_work_dir(each, _read_days(args), args) for each in _list_work_dirs(args)))


def _list_work_dirs(args: Namespace) -> list[str]:
    """Those that were named, relative to where the command is called; else Airflow's own, which need not be there yet.

    Raises :class:`InvalidInput` for what is no folder.
    """
    # A person's path may be relative to where the command is called; in a DAG file it may not, for workers run
    # elsewhere.
    named = [
        str(parse_local_root(each) if each.startswith("file:") else Path(each).absolute()) for each in args.work_dirs
    ]
    for folder in named:
        if not Path(folder).is_dir():
            raise InvalidInput(folder, "", "is no folder")
    return named or [find_default_work_dir()]


def _read_days(args: Namespace) -> float:
    days = read_retention_days() if args.days is None else float(args.days)
    if not 0 <= days < float("inf"):
        raise InvalidInput("airflow dagsched clean", "days", f"must be 0 or more, not {days:g}")
    return days


def _clean_work_dir(work_dir: str, days: float, args: Namespace) -> str:
    now, keep_s = time.time(), days * DAY_S
    found = find_expired(work_dir, now, keep_s, LOCAL, tempfile.gettempdir())
    streams = find_expired_streams(Path(strip_scheme(work_dir)), now, keep_s)
    paths = (*found.paths, *map(str, streams.paths))
    troubles = [*found.troubles, *(Trouble(str(path), reason) for path, reason in streams.troubles)]
    troubles += [] if args.dry_run else remove_expired(paths, LOCAL)
    lines = [f"{'would remove' if args.dry_run else 'remove'} {path}" for path in paths]
    lines += [f"stays {trouble}" for trouble in troubles]
    return "\n".join([*lines, f"{work_dir}: {len(paths)} path(s)"])


def _format_json(plans: Sequence[Plan]) -> str:
    """One document: the plan, or the list of them where the DAG has several dataflows."""
    # One dataflow is the usual case: its plan is then a document that ``dagsched check`` reads.
    documents = [encode_value(each).decode().strip() for each in plans]
    return documents[0] if len(documents) == 1 else f"[{','.join(documents)}]"


def _draw_picture(plans: Sequence[Plan]) -> str:
    """Raises :class:`InvalidInput` for several plans: a file of this kind holds one."""
    if len(plans) > 1:
        raise InvalidInput("--format svg", "", f"is for one dataflow, the DAG has {len(plans)}: take --format dot")
    return draw_svg(plans[0])


PRINTERS: dict[str, Callable[[Sequence[Plan]], str]] = {
    "text": lambda plans: "\n".join(map(explain_plan, plans)),
    "dot": lambda plans: "\n".join(map(draw_dot, plans)),
    "svg": _draw_picture,
    "json": _format_json,
}
