"""Plain values that a step may return: what every reader gets, in this application, in the next, over XCom."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_dagsched.spark.steps.call_step import StepFault, check_answer


def returned(value: Any) -> Any:
    return check_answer(value, (), table=False).value


def test_what_no_database_takes_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """For all readers alike, and the step's log says so."""
    assert returned({"a\0": ["x\ud83d", "\r\n\x1b"]}) == {"a\\x00": ["x\\ud83d", "\r\n\x1b"]}
    assert "shown as text" in capsys.readouterr().out
    assert returned(["\r\n\x1b", "€", 2**64 - 1]) == ["\r\n\x1b", "€", 2**64 - 1]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"deep": [2**64]}, {1, 2}, b"x", "x" * 50_000])
def test_what_cannot_be_sent_is_the_steps_fault(value: Any) -> None:
    with pytest.raises(StepFault, match="return"):
        returned(value)


def test_a_value_without_end() -> None:
    endless: list[Any] = []
    for _ in range(100_000):
        endless = [endless]
    with pytest.raises(StepFault, match="recursion"):
        returned(endless)
