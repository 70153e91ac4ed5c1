"""The command ``dagsched``: makes, checks and simulates plans, and checks logs of streams, without Airflow or Spark.

Exit codes: 0 fine, 1 the plan, or a stream's log, has violations, 2 bad input (one line on stderr), 3 does not fit.
What one command, option or format alone needs is imported there: imports take longer than the plan of a usual dataflow.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from airflow_dagsched.class_archive_cli import add_class_archive_commands
from airflow_dagsched.errors import DagschedError, DoesNotFit, InvalidInput
from airflow_dagsched.launch.managers.standalone.tokens import (
    EXECUTORS,
    SLOTS,
    Offer,
    format_resources,
    format_worker_properties,
)
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import format_json, read_file
from airflow_dagsched.model.dataflow import PLACEMENT, Dataflow
from airflow_dagsched.model.state import State, list_strangers
from airflow_dagsched.model.validate import validate_cluster, validate_dataflow
from airflow_dagsched.placement.acting_settings import refuse_idle_settings
from airflow_dagsched.placement.policy import POLICIES, load_policy
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.measurements import apply_measurements, list_measured, list_narrowed
from airflow_dagsched.plan.merge_dataflows import merge_dataflows
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.pruning import PruningInput, name_interval
from airflow_dagsched.plan.settings import DEFAULTS, Mode, Settings
from airflow_dagsched.plan.settings_file import parse_placement_settings, read_settings
from airflow_dagsched.plan.simulate.values import POLICIES as LAUNCHES
from airflow_dagsched.plan.simulate.values import Conditions, Work
from airflow_dagsched.stream_cli import add_stream_commands

FINE, VIOLATIONS, BAD_INPUT, DOES_NOT_FIT = range(4)
LOCAL_MEMORY_MB = 4096
REPORTS = "text", "json"
PRUNINGS: dict[str, Mode] = {"auto": "auto", "declared": "declared", "analysed": "analysed", "off": False}
FORMATS = "json", "text", "dot", "svg"
NO_FILES = "placement", "dagsched plan"
"""Where bad input may come from besides files: a policy of the user's, a missing extra."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as for bad input of any other kind."""
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _build_parser().parse_args(arguments)
    if sys.stdout is None:  # closed by who called us
        return _report_error(InvalidInput("standard output", "", "is closed"), BAD_INPUT)
    try:
        code = int(options.run(options))
        sys.stdout.flush()  # here, where its errors can be told: at Python's end they can't
    except DoesNotFit as error:
        return _report_error(error, DOES_NOT_FIT)
    except InvalidInput as error:
        return _report_error(error, BAD_INPUT)
    except BrokenPipeError:
        # Whoever reads has seen enough, as of ``dagsched plan ... | head``.
        _drop_output()
        return FINE
    except OSError as error:
        if error.filename is not None:  # what is written to standard output has no name
            return _report_error(InvalidInput(str(error.filename), "", f"cannot be read: {error.strerror}"), BAD_INPUT)
        _drop_output()
        return _report_error(InvalidInput("standard output", "", f"cannot be written: {error.strerror}"), BAD_INPUT)
    return code


def _drop_output() -> None:
    """What is still buffered would fail again, with a traceback, when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_error(error: DagschedError, code: int) -> int:
    """One line; in Python's development mode (``-X dev``) with how it came to it."""
    if sys.flags.dev_mode:
        sys.excepthook(type(error), error, error.__traceback__)
    print(" ".join(str(error).split()), file=sys.stderr)
    return code


def _build_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dagsched", description="Plans a DAG of PySpark steps as few Spark applications.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    planning = commands.add_parser("plan", help="print a plan of a dataflow on a cluster")
    _add_dataflows(planning)
    planning.add_argument("--cluster", metavar="CLUSTER.json", help="default: this machine as one local worker")
    planning.add_argument("--settings", metavar="SETTINGS.json")
    planning.add_argument("--state", metavar="STATE.json", help="measured values replace estimates")
    planning.add_argument(
        "--replan", metavar="PLAN.json", help="of a run that has begun: plan what, by --state, is left of this plan"
    )
    planning.add_argument("--placement", metavar="POLICY", help=f"{', '.join(POLICIES)}, or a class; default: as sized")
    _add_pruning(planning)
    planning.add_argument("--exact", action="store_true", help="let a solver prove how good it is (small dataflows)")
    planning.add_argument("--format", choices=FORMATS, default="json")
    planning.set_defaults(run=_run_plan)
    checking = commands.add_parser("check", help="list every violation of a plan")
    checking.add_argument("plan", metavar="PLAN.json")
    _add_dataflows(checking)
    checking.add_argument("cluster", metavar="CLUSTER.json")
    checking.add_argument("--settings", metavar="SETTINGS.json", help="those the plan was made with")
    known = "measured values, finished and running groups, as the plan was made with"
    checking.add_argument("--state", metavar="STATE.json", help=known)
    strict = "also report what is slower than it need be, or says what is not so of itself"
    checking.add_argument("--strict", action="store_true", help=strict)
    checking.set_defaults(run=_run_check)
    offering = commands.add_parser("worker-resources", help="write what a standalone worker offers to be chosen by")
    offering.add_argument("folder", metavar="FOLDER", help="on the worker; gets resources.json and worker.conf")
    offering.add_argument("--slot", type=int, required=True, help="of this worker, from 1; no other worker has it")
    offering.add_argument("--slots", type=int, default=SLOTS, help="workers there may ever be (default: %(default)s)")
    offering.add_argument(
        "--executors", type=int, default=EXECUTORS, help="most executors on this worker (default: %(default)s)"
    )
    offering.set_defaults(run=_write_worker_resources)
    _add_simulation(commands.add_parser("simulate", help="run a plan on a modelled cluster"))
    add_stream_commands(commands)
    add_class_archive_commands(commands)
    return parser


def _add_dataflows(command: argparse.ArgumentParser) -> None:
    several = "several are planned together, on one cluster: a step is called DATAFLOW/STEP then, also in a state"
    command.add_argument("dataflow", metavar="DATAFLOW.json", nargs="+", help=several)


def _add_pruning(command: argparse.ArgumentParser) -> None:
    told = "of the run's interval, e.g. 2013-01-15: conditions on sources may name it"
    command.add_argument("--prune", choices=tuple(PRUNINGS), default="auto", help="default: %(default)s")
    command.add_argument("--start", metavar="TIME", type=_parse_moment, help=f"start {told}")
    command.add_argument("--end", metavar="TIME", type=_parse_moment, help=f"end {told}")
    command.add_argument("--key", metavar="KEY", help=f"key {told}")


def _parse_moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no ISO 8601 date or time") from None


def _add_simulation(command: argparse.ArgumentParser) -> None:
    command.add_argument("plan", metavar="PLAN.json")
    _add_dataflows(command)
    command.add_argument("cluster", metavar="CLUSTER.json")
    command.add_argument("--settings", metavar="SETTINGS.json", help="those of the plan")
    command.add_argument("--state", metavar="STATE.json", help="the measured values that the plan was made with")
    command.add_argument("--policy", action="append", choices=tuple(LAUNCHES), help="default: plan; may be repeated")
    command.add_argument("--runs", type=_require_at_least(1, int), default=1, help="default: %(default)s")
    command.add_argument(
        "--seed", type=_require_at_least(0, int), default=0, help="of the first run; each other has the next"
    )
    command.add_argument(
        "--noise", type=_require_at_least(0, float), default=0.0, help="deviation of log runtimes, e.g. 0.3"
    )
    for rate, of in (("failures", "each application"), ("losses", "each worker")):
        command.add_argument(f"--{rate}-per-hour", type=_require_at_least(0, float), default=0.0, help=f"of {of}")
    command.add_argument(
        "--retries", type=_require_at_least(0, int), default=3, help="of a group (default: %(default)s)"
    )
    command.add_argument("--format", choices=REPORTS, default="text")
    command.set_defaults(run=_run_simulation)


def _require_at_least(least: int, kind: type[int | float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = kind(text)
        if not least <= value < float("inf"):  # nor is NaN
            raise argparse.ArgumentTypeError(f"{text} is not {least} or more")
        return value

    return number


def _run_plan(options: argparse.Namespace) -> int:
    dataflow = _read_dataflow(options.dataflow)
    cluster = _read_cluster(options.cluster) if options.cluster else _describe_this_machine()
    settings, placement = _read_settings(options.settings)
    state = _read_state(options.state, dataflow)
    if options.replan:
        return _run_replan(options, dataflow, cluster, settings, state)
    _refuse_begun(state, options.state, "give the plan so far (--replan PLAN.json), or leave it out to plan a new run")
    dataflow, cluster = apply_measurements(dataflow, cluster, state, settings=settings)
    policy = _read_policy(options, dataflow, placement, settings, state)
    try:
        known, narrowed = list_measured(state), list_narrowed(dataflow, state)
        run = Run(pruning_input=_read_pruning_input(options), policy=policy, measured=known, narrowed=narrowed)
        made = _choose_planner(options)(dataflow, cluster, settings, run=run)
    except InvalidInput as error:
        raise _name_file(error, options) from error
    sys.stdout.write(_format_plan(made, options.format))
    return FINE


def _name_file(error: InvalidInput, options: argparse.Namespace) -> InvalidInput:
    """The same with the file that is wrong: what names no other is the dataflow's."""
    files = {"settings": options.settings, "state": options.state, "plan": options.replan}
    where = error.where if error.where in NO_FILES else files.get(error.where) or _name_files(options.dataflow)
    return InvalidInput(where, error.field, error.rule)


def _run_replan(
    options: argparse.Namespace, dataflow: Dataflow, cluster: Cluster, settings: Settings, state: State
) -> int:
    from airflow_dagsched.plan.replan.remaining_run import replan_run
    from airflow_dagsched.plan.replan.replanned_page import explain_replanned

    for name in ("placement", "exact"):
        if getattr(options, name):
            raise InvalidInput(
                "dagsched plan", f"--{name}", "is not for --replan, which places groups as they are sized"
            )
    old = read_file(Plan, options.replan)
    try:
        found = replan_run(old, dataflow, cluster, state, settings, asked=_read_pruning_input(options))
    except InvalidInput as error:
        raise _name_file(error, options) from error
    sys.stdout.write(explain_replanned(found) if options.format == "text" else _format_plan(found.plan, options.format))
    return FINE


def _refuse_begun(state: State, path: str, remedy: str) -> None:
    """What starts from nothing would run again what has run."""
    for field, names in (("finished", state.finished), ("running", state.running)):
        if names:
            raise InvalidInput(path, field, f"{names[0]!r} has begun: {remedy}")


def _choose_planner(options: argparse.Namespace) -> Callable[..., Plan]:
    if not options.exact:
        return plan
    from airflow_dagsched.plan.exact.mode import plan_exactly

    return plan_exactly


def _format_plan(made: Plan, form: str) -> str:
    if form == "json":
        return format_json(made)
    if form == "text":
        from airflow_dagsched.plan.report.page import explain_plan

        return explain_plan(made)
    from airflow_dagsched.plan.report.picture import draw_dot, draw_svg

    return draw_dot(made) if form == "dot" else draw_svg(made)


def _read_pruning_input(options: argparse.Namespace) -> PruningInput:
    """Without any word on the interval no run is planned: then nothing is known of it."""
    interval = options.start, options.end, options.key
    # As moments: Python refuses to compare a time that has a zone with one that has none.
    if options.start and options.end and options.start.timestamp() > options.end.timestamp():
        raise InvalidInput("dagsched plan", "--end", f"{options.end} is before --start {options.start}")
    return PruningInput(mode=PRUNINGS[options.prune], names=name_interval(*interval) if any(interval) else {})


def _read_policy(
    options: argparse.Namespace, dataflow: Dataflow, settings: PlacementSettings, planner: Settings, state: State
) -> Policy | None:
    """The policy asked for, or those that steps name.

    Raises ``InvalidInput`` for one that there is not, and for a setting that acts with none of them.
    """
    name = options.placement or ""
    named = [str(step.application[PLACEMENT]) for step in dataflow.steps if step.application.get(PLACEMENT)]
    policies = dict.fromkeys([name, *named] if name else named)
    for policy in policies:
        try:
            load_policy(policy, settings)
        except InvalidInput as error:
            where, field = (
                ("dagsched plan", "--placement") if policy == name else (_name_files(options.dataflow), PLACEMENT)
            )
            raise InvalidInput(where, field, f"{error.field}: {error.rule}".removeprefix(": ")) from error
    defaults = parse_placement_settings(planner)
    refuse_idle_settings(settings, defaults, policies, options.settings)
    return Policy(name, settings, state) if policies else None


def _run_check(options: argparse.Namespace) -> int:
    from airflow_dagsched.plan.checking import check
    from airflow_dagsched.plan.checking.optimality import check_strictly

    settings, _ = _read_settings(options.settings)
    dataflow = _read_dataflow(options.dataflow)
    state = _read_state(options.state, dataflow)
    known = apply_measurements(dataflow, _read_cluster(options.cluster), state, settings=settings)
    rules = check_strictly if options.strict else check
    violations = rules(read_file(Plan, options.plan), *known, settings, state=state)
    for violation in violations:
        print(violation)
    return VIOLATIONS if violations else FINE


def _write_worker_resources(options: argparse.Namespace) -> int:
    folder = Path(options.folder).absolute()
    offer = Offer(options.slot, options.slots, options.executors)
    resources, properties = folder / "resources.json", folder / "worker.conf"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        resources.write_text(format_resources(offer))
        properties.write_text(format_worker_properties(offer, str(resources)))
    except OSError as error:
        raise InvalidInput(options.folder, "", f"cannot be written: {error.strerror}") from None
    print(f"start the worker with: --properties-file {properties}")
    return FINE


def _run_simulation(options: argparse.Namespace) -> int:
    from airflow_dagsched.plan.checking import check
    from airflow_dagsched.plan.simulate.report import compare_policies, write_json, write_text

    made, dataflow, cluster = (
        read_file(Plan, options.plan),
        _read_dataflow(options.dataflow),
        _read_cluster(options.cluster),
    )
    settings, _ = _read_settings(options.settings)
    state = _read_state(options.state, dataflow)
    _refuse_begun(state, options.state, "leave it out: a simulation runs all of a plan")
    dataflow, cluster = apply_measurements(dataflow, cluster, state, settings=settings)
    violations = check(made, dataflow, cluster, settings, state=state)
    for violation in violations:
        print(violation)
    if violations:
        return VIOLATIONS
    met = Conditions(options.noise, options.failures_per_hour, options.losses_per_hour, options.retries, options.seed)
    report = compare_policies(Work(made, dataflow), cluster, met, options.policy or ["plan"], options.runs, settings)
    sys.stdout.write((write_text if options.format == "text" else write_json)(report))
    return FINE


def _read_dataflow(paths: Sequence[str]) -> Dataflow:
    """The dataflow of the file, or all of several files as one."""
    dataflows = [validate_dataflow(read_file(Dataflow, path), path) for path in paths]
    return dataflows[0] if len(paths) == 1 else validate_dataflow(merge_dataflows(dataflows), _name_files(paths))


def _name_files(paths: Sequence[str]) -> str:
    return ", ".join(paths)


def _read_state(path: str | None, dataflow: Dataflow) -> State:
    """The state; what it knows of that the dataflow has not is told, for a history may be older than the dataflow."""
    state = read_file(State, path) if path else State()
    for name in list_strangers(state, dataflow):
        print(f"{path}: the dataflow has no {name}: what is said of it does not count", file=sys.stderr)
    return state


def _read_settings(path: str | None) -> tuple[Settings, PlacementSettings]:
    return read_settings(path) if path else (DEFAULTS, parse_placement_settings())


def _read_cluster(path: str) -> Cluster:
    return validate_cluster(read_file(Cluster, path), path)


def _describe_this_machine() -> Cluster:
    cores = os.cpu_count() or 1
    print(f"no --cluster: planned for one local worker, {cores} cores, {LOCAL_MEMORY_MB} MiB", file=sys.stderr)
    worker = Worker(id="local", host="localhost", cores=cores, memory_mb=LOCAL_MEMORY_MB)
    return Cluster(manager="local", workers=(worker,))
