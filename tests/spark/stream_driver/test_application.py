"""What one epoch's misfortune does to the others in its application: nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_dagsched.switch.log.signs_files import read_ended
from tests.spark.stream_driver.played import Application, PlayedSpark
from tests.streams.kit import Graph


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    made = Application(tmp_path, PlayedSpark(("spark.sql.extensions",)))
    yield made
    made.under_test.close()


def test_a_setting_that_spark_refuses_ends_the_edit_alone(application: Application):
    application.real = (2,)
    secret = {"spark.sql.extensions": "jdbc:x://h?password=guess-it"}
    new = application.flow.ask(Graph("second", session=secret))
    application.step(3)
    aborted = application.story.epochs[2].aborted
    assert aborted is not None
    assert "[CANNOT_MODIFY_CONFIG] spark.sql.extensions" in aborted.reason
    assert "guess-it" not in aborted.reason + new.exit.read_text()
    assert aborted.x_cause == "author"
    assert not application.runs[1].is_over
    ended = read_ended(new)
    assert ended is not None
    assert (ended.code, ended.kind) == (1, "author")
