"""``airflow dagsched ...``. Imported by every ``airflow`` call: whatever works is loaded when used."""

from __future__ import annotations

from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand, lazy_load_command

DAG = Arg(("dag",), help="id of the DAG, or its file")
FORMAT = Arg(("--format",), choices=("text", "json", "dot", "svg"), default="text", help="how to print (default: text)")
CONN_ID = Arg(("--conn-id",), default=None, help="plan for this connection's cluster instead of the dataflow's own")
LIVE = Arg(("--live",), action="store_true", help="on what is free now, as a launch would (default: all there is)")
WORK_DIR = Arg(("work_dirs",), nargs="*", help="work folders (default: [dagsched] work_dir)")
DAYS = Arg(("--days",), type=float, default=None, help="keep what is younger (default: [dagsched] retention_days)")
EXACT = Arg(("--exact",), action="store_true", help="let a solver prove how good the plan is (small dataflows)")
DRY_RUN = Arg(("--dry-run",), action="store_true", help="only say what would be done")
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
                    (DAG, CONN_ID, LIVE, FORMAT),
                ),
                ActionCommand(
                    "tune",
                    "Turn the run history of a DAG's dataflows into plan files beside the DAG file",
                    lazy_load_command(f"{WORK}.tune"),
                    (DAG, CONN_ID, EXACT, DRY_RUN),
                ),
                ActionCommand(
                    "clean",
                    "Remove what nobody reads any more",
                    lazy_load_command(f"{WORK}.clean"),
                    (WORK_DIR, DAYS, DRY_RUN),
                ),
            ),
        )
    ]
