"""The job that keeps a dataset for its readers, in the turn of the first of them: whose it is, and who hears of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.blame import blame_step, describe_end
from airflow_dagsched.spark.driver.fused import widen_session
from airflow_dagsched.spark.driver.materialise import Part, compare_columns, estimate_width
from airflow_dagsched.spark.session.current import CURRENT, work_for
from airflow_dagsched.spark.session.observed import Counted
from airflow_dagsched.spark.session.sessions import enter_session
from airflow_dagsched.spark.steps.deferred import Deferred, RowsFailed

if TYPE_CHECKING:
    from airflow_dagsched.spark.session.cache_filling import Filled


def fill_kept(
    app: Application,
    deferred: Deferred,
    rows: DataFrame,
    counted: Counted | None,
    *,
    fused: tuple[str, ...],
    are_all: bool,
) -> Filled:
    """Execute ``rows`` of the dataset, and keep them: the turn of its step is complete then. Raises ``RowsFailed``.

    :param counted: all rows of the dataset, where ``rows`` are some of them, and it is known how many there are.
    :param fused: the lazy steps that executing ``rows`` executes.
    :param are_all: whether ``rows`` are all of them.
    """
    from airflow_dagsched.spark.session.cache_filling import fill_cache  # each start pays for an import

    began, output, session = time.monotonic(), deferred.output, rows.sparkSession
    widen_session(app, session, output.step, fused)
    # In the pool of who needs the rows: the plan's gate, and who watches for progress, look at that.
    reader = CURRENT.step or output.step
    enter_session(session, reader, f"{output.step}, for {reader}")
    app.shelf.keep_beside(output, rows)
    try:
        kept = fill_cache(rows)
    except Exception as error:
        app.stored.raise_if_asked(error)
        guilty, failure = describe_end(app, output.step, error)
        app.ledger.end_turns(*blame_step(app, output.step, guilty, failure))
        deferred.failed = RowsFailed(guilty, failure)
        raise deferred.failed from error
    call = app.calls.find(output.step)
    assert call is not None, f"{output} is nobody's"
    whole = kept.rows if are_all else None if counted is None else counted.read()
    part = _make_part(deferred, rows, kept, whole, are_all=are_all)
    with work_for(output.step, session):
        for line in part.describe():
            print(f"{f'{output.name}: ' if output.name else ''}kept {line}")
    call.turn.add_kept(output.name, part, time.monotonic() - began, fused)
    return kept


def _make_part(deferred: Deferred, rows: DataFrame, kept: Filled, whole: int | None, *, are_all: bool) -> Part:
    some = None if are_all else kept.rows
    return Part("keep", whole, None, estimate_width(rows), compare_columns(deferred.rows, rows), kept.size, some)
