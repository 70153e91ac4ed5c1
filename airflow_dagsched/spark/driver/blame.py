"""Whose failure it was, where the job of one step executed others."""

from __future__ import annotations

from airflow_dagsched.launch.protocol.events import Failure
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.failures import describe_failure, find_culprit, read_text
from airflow_dagsched.spark.steps.ledger import Made


def describe_end(app: Application, step: str, error: BaseException) -> tuple[str, Failure]:
    """The step whose code the failure in the job of ``step`` came from, and what is said of it."""
    text = read_text(error)
    above = [app.lineage.by_id[up] for up in app.lineage.above[step] if not app.ledger.is_announced(up)]
    guilty = find_culprit(text, [*above, app.lineage.by_id[step]]) or step
    return guilty, describe_failure(error, text, step)


def blame_step(app: Application, step: str, guilty: str, failure: Failure) -> list[Made]:
    """The guilty step failed, with it all on the way from there to the step whose job it was."""
    if guilty == step:
        return [Made(step, "failed", failure=failure)]
    above = app.lineage.above
    between = [up for up in above[step] if guilty in above[up] and app.ledger.is_defined(up)]
    reason = f"{guilty!r} failed in the job of {step!r}"
    return [
        Made(guilty, "failed", failure=failure),
        *(Made(each, "upstream_failed", reason=reason) for each in [*between, step]),
    ]
