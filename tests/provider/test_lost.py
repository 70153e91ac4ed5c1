"""What a driver program that went without a last word is thought to have died of."""

import pytest

from airflow_dagsched.provider.following.follower import judge_lost_driver

SUBMIT = "Cannot execute: spark-submit --master local[2] driver.py. Error code is: {}.\nLast spark-submit output:\n{}"


@pytest.mark.parametrize(
    ("code", "output", "kind", "words"),
    [
        (137, "INFO all is well", "out_of_memory", "killed from outside (exit code 137)"),
        (-9, "INFO all is well", "lost_driver", "killed from outside (exit code -9)"),
        (-6, "", "lost_driver", "ended without a word (exit code -6)"),
        (1, "java.lang.OutOfMemoryError: Java heap space", "out_of_memory", "ran out of memory (exit code 1)"),
        (1, "ERROR 137 things are wrong", "lost_driver", "ended without a word (exit code 1)"),
        (143, "", "lost_driver", "ended without a word (exit code 143)"),
    ],
)
def test_cause_is_read_from_exit_code_and_last_lines(code: int, output: str, kind: str, words: str) -> None:
    """Only what points at memory makes the next try take more of it."""
    found = judge_lost_driver(SUBMIT.format(code, output))
    assert found.kind == kind
    assert words in found.message


def test_error_of_another_kind_is_a_lost_driver() -> None:
    """Not every error comes from an exit code."""
    assert judge_lost_driver("the connection went away").kind == "lost_driver"
