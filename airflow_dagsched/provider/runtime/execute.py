"""One try of a launch task, read from the top: facts, then submit after submit, then what Airflow is told."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.runtime.ends import conclude_attempt, translate_errors
from airflow_dagsched.provider.runtime.foresight import foretell_rest
from airflow_dagsched.provider.runtime.moves import open_moves
from airflow_dagsched.provider.runtime.submits import Submits
from airflow_dagsched.provider.runtime.submitting import (
    allocate,
    end_without_running,
    open_paths,
    prepare_steps,
    ship_steps,
    submit_and_follow,
)
from airflow_dagsched.provider.runtime.takeover import take_over

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.runtime.launch_task import LaunchTask


def execute(launch: LaunchTask, context: Context) -> dict[str, Any]:
    """Run what can run of the group; fail if any step failed; return what was measured."""
    return run_attempt(Attempt.begin(launch, context))


def run_attempt(attempt: Attempt) -> dict[str, Any]:
    """Submit what there is to submit, tell the mirrors, return what was measured."""
    # The feed is closed after errors were translated: they give steps without an end theirs, and it is the last word.
    with closing(attempt.follower), translate_errors(attempt):
        attempt.left = foretell_rest(attempt.spec, attempt.facts, attempt.hook, attempt.folder.parent)
        open_moves(attempt)
        take_over(attempt)
        submits = Submits(attempt)
        for targets in submits:  # nearly always one
            with submits.escalating(targets), open_paths(attempt, targets) as paths:
                prepared = prepare_steps(attempt, targets)
                if ends := end_without_running(prepared):
                    attempt.follower.take(ends)
                    continue
                shipment = ship_steps(attempt, prepared, paths)
                with allocate(attempt, prepared) as allocation:
                    submit_and_follow(attempt, prepared, shipment, paths, allocation)
    return conclude_attempt(attempt)
