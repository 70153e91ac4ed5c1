"""Lazy steps whose rows a job makes on its way: it is theirs, too."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession

from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.session.sessions import set_session


def find_executed(app: Application, marks: Iterable[str]) -> set[str]:
    """The lazy steps that executing a plan with these marks would execute."""
    owners = (app.shelf.find_owner(mark) for mark in marks)
    return {owner.step for owner in owners if owner is not None}


def order_steps(app: Application, steps: Iterable[str]) -> tuple[str, ...]:
    """In the manifest's order: of equally wide ones always the same."""
    chosen = {*steps}
    return tuple(spec.id for spec in app.lineage.specs if spec.id in chosen)


def widen_session(app: Application, session: SparkSession, step: str, executed: Iterable[str]) -> None:
    """Shuffles of the lazy steps are in the job of ``step``: all are as parallel as the widest of them."""
    told, instances = app.manifest.session, app.manifest.instances
    # Where the author says nothing of the step whose job it is, Spark's own way stays.
    if step in told and {*executed} - {step}:
        known = [each for each in (*order_steps(app, {*executed} - {step}), step) if each in told]
        set_session(session, told[max(known, key=lambda each: instances.get(each, 1))])
