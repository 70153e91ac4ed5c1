"""The job that keeps a dataset for its readers, in the turn of the first of them: whose it is, and who hears of it."""

from __future__ import annotations

import time

from pyspark.sql import DataFrame

from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.blame import blame_step, describe_end
from airflow_dagsched.spark.driver.fused import find_executed, order_steps, widen_session
from airflow_dagsched.spark.driver.materialise import Part, compare_columns, estimate_width
from airflow_dagsched.spark.session.current import CURRENT, work_for
from airflow_dagsched.spark.session.plan_columns import measure_kept
from airflow_dagsched.spark.session.sessions import enter_session
from airflow_dagsched.spark.steps.deferred import Deferred, RowsFailed


def fill_kept(app: Application, deferred: Deferred, rows: DataFrame) -> None:
    """Execute ``rows`` of the dataset, and keep them: the turn of its step is complete then. Raises ``RowsFailed``."""
    began, output, session = time.monotonic(), deferred.output, rows.sparkSession
    fused = order_steps(app, find_executed(app, rows, session))
    widen_session(app, session, output.step, fused)
    # In the pool of who needs the rows: the plan's gate, and who watches for progress, look at that.
    reader = CURRENT.step or output.step
    enter_session(session, reader, f"{output.step}, for {reader}")
    app.note_execution(rows)
    app.shelf.keep_beside(output, rows)
    try:
        # Fills the cache: every partition is computed to be counted.
        count = rows.count()
    except Exception as error:
        app.stored.raise_if_asked(error)
        guilty, failure = describe_end(app, output.step, error)
        app.ledger.end_turns(*blame_step(app, output.step, guilty, failure))
        deferred.failed = RowsFailed(guilty, failure)
        raise deferred.failed from error
    call = app.calls.find(output.step)
    assert call is not None, f"{output} is nobody's"
    part = Part("keep", count, None, estimate_width(rows), compare_columns(deferred.rows, rows), measure_kept(rows))
    if part.left_out is not None:
        with work_for(output.step, session):
            print(f"{f'{output.name}: ' if output.name else ''}kept {part.left_out.describe()}")
    call.turn.add_kept(output.name, part, time.monotonic() - began, fused)
