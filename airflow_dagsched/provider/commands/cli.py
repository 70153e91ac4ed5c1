"""``airflow dagsched ...``. Imported by every ``airflow`` call: whatever works is loaded when used."""

from __future__ import annotations

from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand, lazy_load_command

DAG = Arg(("dag",), help="id of the DAG, or its file")
FORMAT = Arg(("--format",), choices=("text", "json", "dot", "svg"), default="text", help="how to print (default: text)")
CONN_ID = Arg(("--conn-id",), default=None, help="plan for this connection's cluster instead of the dataflow's own")
LIVE = Arg(("--live",), action="store_true", help="on what is free now, as a launch would (default: all there is)")
DATE = Arg(("--date",), default=None, help="logical date of the run, whose interval is pruned by (default: none)")
CONF = Arg(("--conf",), default=None, help="configuration of the run, as JSON: its params with --date, and how it runs")
RUNS = Arg(("--runs",), type=int, default=1, help="how many are simulated (default: 1)")
SEED = Arg(("--seed",), type=int, default=0, help="of the first run; each other has the next (default: 0)")
NOISE = Arg(("--noise",), type=float, default=0.0, help="deviation of log runtimes, e.g. 0.3 (default: 0)")
FAILURES = Arg(("--failures-per-hour",), type=float, default=0.0, help="of each application (default: 0)")
WORK_DIR = Arg(("work_dirs",), nargs="*", help="work folders (default: [dagsched] work_dir)")
DAYS = Arg(("--days",), type=float, default=None, help="keep what is younger (default: [dagsched] retention_days)")
EXACT = Arg(("--exact",), action="store_true", help="let a solver prove how good the plan is (small dataflows)")
DRY_RUN = Arg(("--dry-run",), action="store_true", help="only say what would be done")
FLOW = Arg(("--flow",), default=None, help="name of the stream, where the DAG has several")
STEP = Arg(("--step",), default=None, help="the step that writes what is compared, where several do")
REASON = Arg(("--reason",), default="", help="for those who read the stream's log later")
AGAIN = Arg(("--again",), action="store_true", help="also where this very code runs: a new epoch of it takes over")
MOVE = Arg(
    ("--move",),
    action="store_true",
    help="a new epoch of this very code takes over on other workers, if the plan is strictly better there",
)
OPEN = Arg(
    ("--open",),
    action="store_true",
    help="also from a graph that runs no more and has open windows: what it has not read of those is lost",
)
STATUS_FORMAT = Arg(("--format",), choices=("text", "json"), default="text", help="how to print (default: text)")
NAMES = Arg(("names",), nargs="*", help="names of warm applications, as listed (default: all)")
NOW = Arg(("--now",), action="store_true", help="also while a run is at work, which ends with it")
WARM = "airflow_dagsched.provider.commands.warm"
STREAMS = "airflow_dagsched.provider.commands.streams"
WORK = "airflow_dagsched.provider.commands.actions"


def commands() -> list[GroupCommand]:
    """The commands, for Airflow's parser."""
    return [
        GroupCommand(
            name="dagsched",
            help="Plan Spark dataflows, and clean up after them",
            subcommands=(
                ActionCommand(
                    "plan",
                    "Print the plan of a DAG's dataflows",
                    lazy_load_command(f"{WORK}.plan"),
                    (DAG, CONN_ID, DATE, CONF, LIVE, FORMAT),
                ),
                ActionCommand(
                    "tune",
                    "Turn the run history of a DAG's dataflows into plan files beside the DAG file",
                    lazy_load_command(f"{WORK}.tune"),
                    (DAG, CONN_ID, EXACT, DRY_RUN),
                ),
                ActionCommand(
                    "simulate",
                    "Run the plan of a DAG's dataflows on a modelled cluster",
                    lazy_load_command(f"{WORK}.simulate"),
                    (DAG, CONN_ID, DATE, CONF, LIVE, RUNS, SEED, NOISE, FAILURES),
                ),
                ActionCommand(
                    "clean",
                    "Remove what nobody reads any more",
                    lazy_load_command(f"{WORK}.clean"),
                    (WORK_DIR, DAYS, DRY_RUN),
                ),
                GroupCommand(
                    name="warm",
                    help="Look at this user's warm applications on this machine, and end them",
                    subcommands=(
                        ActionCommand("list", "One line an application", lazy_load_command(f"{WARM}.list_warm"), ()),
                        ActionCommand("stop", "End them", lazy_load_command(f"{WARM}.stop"), (NAMES, NOW)),
                    ),
                ),
                GroupCommand(name="stream", help="Look at a DAG's streams, and switch them", subcommands=_of_streams()),
            ),
        )
    ]


def _of_streams() -> tuple[ActionCommand, ...]:
    return (
        ActionCommand(
            "status",
            "Say how a DAG's streams stand, and what they wait for",
            lazy_load_command(f"{STREAMS}.status"),
            (DAG, FLOW, STATUS_FORMAT),
        ),
        ActionCommand(
            "log",
            "Print the records of a stream, one line each",
            lazy_load_command(f"{STREAMS}.log"),
            (DAG, FLOW, STATUS_FORMAT),
        ),
        ActionCommand(
            "compare",
            "Say in which windows a graph that waits for a word differs from the one that runs",
            lazy_load_command(f"{STREAMS}.compare"),
            (DAG, FLOW, STEP, STATUS_FORMAT),
        ),
        ActionCommand(
            "switch",
            "Start a run, which switches to the DAG file's code, or starts what was stopped",
            lazy_load_command(f"{STREAMS}.switch"),
            (DAG, AGAIN, MOVE, OPEN),
        ),
        ActionCommand(
            "confirm",
            "Let a graph that has caught up take over",
            lazy_load_command(f"{STREAMS}.confirm"),
            (DAG, FLOW, REASON),
        ),
        ActionCommand(
            "abort",
            "Give a switch up: the old graph goes on",
            lazy_load_command(f"{STREAMS}.abort"),
            (DAG, FLOW, REASON),
        ),
        ActionCommand(
            "stop",
            "Let a stream end after its batch",
            lazy_load_command(f"{STREAMS}.stop"),
            (DAG, FLOW, REASON),
        ),
    )
