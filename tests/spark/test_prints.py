"""What steps print and log, whoever configured the logging."""

from __future__ import annotations

import logging
import sys

from airflow_dagsched.spark.session.capture_output import LINE_CHARS, capture_output, end_lines
from airflow_dagsched.spark.session.current import work_for


def test_prints_of_a_step_and_of_nobody(capsys) -> None:  # type: ignore[no-untyped-def]
    lines: list[tuple[str, str]] = []
    with capture_output(lambda step, line: lines.append((step, line))):
        print("before")
        with work_for("a"):
            print("one\ntwo", file=sys.stderr)
            print("begun", end="")
            print(" and ended")
            print("cut", end="")
            end_lines()
        print("after")
    assert lines == [("a", "one"), ("a", "two"), ("a", "begun and ended"), ("a", "cut")]
    assert capsys.readouterr().out == "before\nafter\n"


def test_a_logger_configured_before_is_heard_once() -> None:
    """It has its own handler on the old stderr, and does not propagate."""
    lines: list[str] = []
    logger = logging.getLogger("tests.prints.before")
    handler = logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    logger.propagate = False
    old = handler.stream
    with capture_output(lambda _, line: lines.append(line)), work_for("a"):
        logger.warning("heard")
        logging.getLogger("tests.prints.new").info("this too")
    assert lines == ["heard", "INFO tests.prints.new: this too"]
    assert handler.stream is old


def test_a_line_without_end_is_several() -> None:
    """Written in small parts, as a progress bar does: nothing is lost, nothing waits for the end."""
    lines: list[str] = []
    with capture_output(lambda _, line: lines.append(line)), work_for("a"):
        for _ in range(2 * LINE_CHARS // 80):
            print("." * 100, end="")
        assert [len(line) for line in lines] == [LINE_CHARS] * 2
        print("\r\nand\rmore\r")
    assert lines[2:] == ["." * (LINE_CHARS // 2), "and\rmore"]
