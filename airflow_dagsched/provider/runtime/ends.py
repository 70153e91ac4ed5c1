"""From the ends of a group's steps, or from what was refused, to the end of its launch task."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, AirflowTaskTimeout

from airflow_dagsched.errors import DagschedError, InvalidInput, LaunchRefused
from airflow_dagsched.launch.escalation.overtime import end_overtime_steps, explain_timeout
from airflow_dagsched.launch.protocol.events import Failure, StepDone
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.provider.following.standing import Superseded
from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.runtime.history import record_applications
from airflow_dagsched.provider.spec.outlets import list_outlets
from airflow_dagsched.provider.spec.run_history import locate_history
from airflow_dagsched.provider.submission.secrets import read_airflow_secrets

log = logging.getLogger(__name__)


@contextmanager
def translate_errors(attempt: Attempt) -> Iterator[None]:
    """What is refused inside, and a time that is over, become Airflow's exceptions; steps without an end get one.

    Only what may pass by itself (no worker just now, a later try) is left to Airflow's retries.
    """
    try:
        yield
    except DagschedError as error:
        # First: what it learns is masked in what the steps are told, too.
        refusal = translate_refusal(error, attempt.follower.masking)
        _blame_steps(attempt, error)
        raise refusal from None
    except AirflowTaskTimeout:
        # Anew, with what the steps wait for: Airflow's own says the limit alone.
        raise AirflowTaskTimeout(_stop_overtime(attempt)) from None


def translate_refusal(error: DagschedError, masking: Masking) -> AirflowException:
    """What Airflow is to know of it, without secrets; retried if it may pass by itself."""
    # An error may quote what a template was rendered to, from a connection that was read since.
    masking.add(read_airflow_secrets())
    log.debug("why the launch is refused", exc_info=error)
    passing = isinstance(error, Superseded) or (isinstance(error, LaunchRefused) and error.passing)
    return (AirflowException if passing else AirflowFailException)(masking.text(str(error)))


def _blame_steps(attempt: Attempt, error: DagschedError) -> None:
    """Steps without an end yet fail with it: those it names, else all."""
    failure, steps = Failure("refused", str(error)), attempt.flow.steps
    where = error.where if isinstance(error, InvalidInput) else ""
    named = {name for name in attempt.steps if repr(steps[name].task_id) in where}
    for name in attempt.steps:
        if name in attempt.follower.feed.steps:
            continue
        if not named or name in named:
            attempt.follower.take([StepDone(name, "failed", failure=failure)])
        else:
            attempt.follower.take([StepDone(name, "upstream_failed", reason=f"not run: {error}")])


def _stop_overtime(attempt: Attempt) -> str:
    """Stop the application, which says what its steps wait for; they end with that. Why the launch ends, too."""
    follower = attempt.follower
    attempt.launch.end_submit()
    follower.catch_up()
    timeout, stalls = attempt.launch.execution_timeout, dict(follower.stalls)
    limit_s = timeout.total_seconds() if timeout else 0.0
    follower.take(end_overtime_steps(attempt.steps, follower.feed, limit_s, stalls))
    return explain_timeout(limit_s, stalls)


def conclude_attempt(attempt: Attempt) -> dict[str, Any]:
    """What the launch task returns; raises what Airflow is to know where a step failed, or all were skipped."""
    attempt.standing.demand()
    follower, told = attempt.follower, attempt.follower.feed.steps
    # Of the others that it has taken those that did not end well are run by whose they are.
    ends = {name: told[name] for name in attempt.own if name in told}
    missing = [name for name in attempt.own if name not in ends]
    if missing:
        raise AirflowException(f"the driver program ended without a word on {', '.join(missing)}")
    raise_for(list_failed(ends.values()))
    if not follower.told:
        # Mirrors would wait for an end that nobody tells them.
        raise AirflowException("Airflow did not take the last word on the steps: a retry says it, and runs nothing")
    if all(done.state == "skipped" for done in ends.values()):
        raise AirflowSkipException("every step of the group is skipped")
    _emit_outlets(attempt, ends)
    run_id = attempt.facts.run_id
    record_applications(locate_history(attempt.flow), attempt.flow.conn_id, attempt.applications, run_id)
    return {
        "steps": {name: report_measured(done) for name, done in told.items()},
        "pruned": {name: done.reason for name, done in ends.items() if done.state == "pruned"},
        "applications": follower.applications,
        "warm_run": follower.warm_run,
        "cuts": attempt.cuts,
        "left": attempt.left,
        "replan": attempt.describe_replan(),
        "work": attempt.work,
        "predicted_s": round(attempt.predicted_s, 1),
        "measured_s": round(time.monotonic() - attempt.began, 1),
    }


def _emit_outlets(attempt: Attempt, ends: Mapping[str, StepDone]) -> None:
    """Keep the outlets of what was really written; of what is reused, if no earlier try emitted it."""
    clears = attempt.facts.try_id.clear_number
    emitted = attempt.memory.emitted(clears)
    fresh = {name for name, done in ends.items() if is_fresh(done, emitted)}
    # Airflow reads the operator's outlets once its ``execute`` has returned, and sends an event for each.
    steps = attempt.flow.steps
    attempt.launch.outlets = list_outlets(steps[name] for name in attempt.own if name in fresh)
    attempt.memory.note_good_end(fresh, clears)


def list_failed(ends: Iterable[StepDone]) -> list[StepDone]:
    """The ends that make a launch task red."""
    return [done for done in ends if done.state in ("failed", "upstream_failed")]


def raise_for(bad: Sequence[StepDone]) -> None:
    """A failed step may be mended by a retry; a step whose upstream failed may not."""
    if not bad:
        return
    text = "; ".join(f"{done.step}: {done.failure.message if done.failure else done.reason}" for done in bad)
    if all(done.state == "upstream_failed" for done in bad):
        raise AirflowFailException(text)
    raise AirflowException(text)


def is_fresh(done: StepDone, emitted: frozenset[str]) -> bool:
    """Whether its asset event is still to be sent: ``emitted`` are the steps whose was."""
    return done.state == "success" or (done.state == "reused" and done.step not in emitted)


def report_measured(done: StepDone) -> dict[str, Any]:
    """What the launch task returns of a step."""
    return {"state": done.state, "rows": done.rows, "bytes": done.bytes, "seconds": done.seconds}
