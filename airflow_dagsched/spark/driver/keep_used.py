"""Keeps what several jobs read, the columns and rows they take, and has the plans about to be executed read that.

::

    frames of a turn ── marked datasets in them, the outer ones first ── kept ── frames over what is kept
                        (with several readers, or more than once here)

What a frame takes of a dataset is looked at anew before it reads what is kept: one that takes more has it kept whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.fill_kept import fill_kept
from airflow_dagsched.spark.driver.fused import find_executed, order_steps
from airflow_dagsched.spark.driver.used_columns import find_readers_use, find_use_of
from airflow_dagsched.spark.session.current import work_for
from airflow_dagsched.spark.session.observed import count_all
from airflow_dagsched.spark.session.plan_columns import KeptColumns, Use, select_use, unite_uses
from airflow_dagsched.spark.session.plan_markers import count_marks
from airflow_dagsched.spark.session.sessions import plan_anew
from airflow_dagsched.spark.steps.deferred import Deferred
from airflow_dagsched.spark.steps.planned import Planned


def keep_inputs(app: Application, session: SparkSession, planned: tuple[Planned, ...]) -> tuple[Planned, ...]:
    """Keep each dataset with several readers that these execute, or that is in them more than once.

    Returns them over what is kept, with the marks that are in them then. Raises ``RowsFailed`` where the job that keeps
    one fails, or did.
    """
    tried: set[Output] = set()
    planned = _count_marks(session, planned)
    while (output := _find_outermost(app, planned, tried)) is not None:
        # Once each: a bare scan is not kept, and would come again for ever.
        tried.add(output)
        deferred = app.shelf.deferred.get(output)
        if deferred is None:
            planned = _keep_lazy(app, session, output, planned)
        else:
            _keep_for_readers(app, deferred)
            planned = tuple(_read_kept(app, deferred, each) for each in planned)
        planned = _count_marks(session, planned)
    return planned


def _count_marks(session: SparkSession, planned: tuple[Planned, ...]) -> tuple[Planned, ...]:
    return tuple(replace(each, marks=count_marks(each.df, session)) for each in planned)


def _find_outermost(app: Application, planned: tuple[Planned, ...], tried: set[Output]) -> Output | None:
    """The dataset to keep next, or None. Those below it may be executed once alone, once it is kept."""
    total, due = Counter[str](), Counter[str]()
    for each in planned:
        total.update(each.marks)
        due.update(each.marks if each.is_executed else {})
    found: dict[int, Output] = {}
    for mark, times in total.items():
        owner = app.shelf.find_owner(mark)
        if owner is not None and owner not in tried and (due[mark] if owner in app.shelf.deferred else times > 1):
            # By its number: the one made last is not below another.
            found[int(mark.rpartition("__")[2])] = owner
    return found[max(found)] if found else None


def _keep_lazy(
    app: Application, session: SparkSession, output: Output, planned: tuple[Planned, ...]
) -> tuple[Planned, ...]:
    """Keep a lazy dataset that is read more than once, in this turn alone. The first job that reads it fills it."""
    handed = app.shelf.get_handed(output)
    use = unite_uses(find_use_of(app, output, each) for each in planned)
    if handed.bare_scan or use is None or _is_all(use, handed.content):
        keep_lazy_whole(app, output)
        return planned
    rows = select_use(handed.content, use)
    # Its own alias is no dataset below it.
    (kept,) = keep_inputs(app, session, (Planned(output, rows, "keep", False),))
    opened = app.open_plan(kept.df)
    app.shelf.keep_beside(output, opened)
    there = KeptColumns(opened, use, plan_anew(opened, opened.sparkSession).withCachedData())
    return tuple(replace(each, df=there.read(each.df, handed.mark)) for each in planned)


def keep_lazy_whole(app: Application, output: Output) -> None:
    """Keep the rows of ``output``, if they are lazy, and no bare scan: then they are computed whole."""
    handed = app.shelf.get_handed(output)
    if isinstance(handed.content, DataFrame) and not handed.bare_scan:
        app.note_whole(handed.content)
    app.shelf.keep_lazy(output)


def _is_all(use: Use, df: DataFrame) -> bool:
    return len(use.columns) == len(df.columns) and not use.conditions


def _keep_for_readers(app: Application, deferred: Deferred) -> None:
    """Keep what the readers take of the dataset, unless something is kept."""
    use = None
    # Before the lock: readers that are waited for may want it, but say first that they need not be waited for.
    if deferred.kept is None and not deferred.acted_on:
        use = find_readers_use(app, deferred.output)
    with deferred.guard:
        if deferred.kept is None:
            _keep_use(app, deferred, None if deferred.acted_on else use)


def keep_whole(app: Application, deferred: Deferred) -> None:
    """Keep all of the dataset as it stands in any plan, that of an action of the author's among them.

    Raises ``RowsFailed`` where the job fails, or did.
    """
    deferred.acted_on = True
    for inner in find_deferred(app, (deferred.rows,), deferred.rows.sparkSession):
        keep_whole(app, inner)
    with deferred.guard:
        if deferred.kept is None:
            _keep_use(app, deferred, None)
        elif not deferred.in_any_plan:
            _tell(deferred, "a reader asks for more than was kept: all of it is kept now")
            app.note_whole(deferred.rows)
            app.shelf.keep_beside(deferred.output, deferred.rows)
            deferred.in_any_plan = True


def find_deferred(app: Application, frames: Iterable[DataFrame], session: SparkSession) -> tuple[Deferred, ...]:
    """The datasets that are kept by who executes them first, and that these would execute; those below others first."""
    marks = {mark for df in frames for mark in count_marks(df, session)}
    found = [each for each in app.shelf.deferred.values() if each.mark in marks]
    return tuple(found)


def _keep_use(app: Application, deferred: Deferred, use: Use | None) -> None:
    """Execute it, and keep so much of it; None: all."""
    if deferred.failed is not None:
        raise deferred.failed
    use = use or Use(frozenset(range(len(deferred.rows.columns))))
    # Where not even all rows below it are there, nobody can count its own.
    counted = count_all(deferred.rows) if use.conditions and not app.stored.has_some(deferred.rows) else None
    rows = select_use(deferred.rows if counted is None else counted.df, use)
    (each,) = keep_inputs(app, deferred.rows.sparkSession, (Planned(deferred.output, rows, "keep", False),))
    opened = app.open_plan(each.df)
    fused = order_steps(app, find_executed(app, each.marks))
    filled = fill_kept(app, deferred, opened, counted, fused=fused, are_all=not use.conditions)
    deferred.kept = KeptColumns(opened, use, filled.plan)
    # Over other datasets' columns, or rows, it is another plan than the one that readers have.
    deferred.in_any_plan = opened is deferred.rows


def _read_kept(app: Application, deferred: Deferred, each: Planned) -> Planned:
    """``each`` over what is kept, where it is one that is executed."""
    kept = deferred.kept
    if not each.is_executed or deferred.in_any_plan or kept is None:
        return each
    use = find_use_of(app, deferred.output, each)
    if use is not None and kept.serves(use):
        return replace(each, df=kept.read(each.df, deferred.mark))
    keep_whole(app, deferred)
    return each


def _tell(deferred: Deferred, line: str) -> None:
    step = deferred.output.step
    with work_for(step, deferred.rows.sparkSession):
        print(line)
