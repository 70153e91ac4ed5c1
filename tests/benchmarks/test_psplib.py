"""PSPLIB files: read as published, refused in one line where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_dagsched.errors import InvalidInput
from benchmarks.psplib import read_project
from tests.benchmarks.drawn import SMALL, sm_text


def written(folder: Path, text: str) -> Path:
    file = folder / "p1_1.sm"
    file.write_text(text)
    return file


def test_a_project_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_project(written(tmp_path, sm_text(SMALL))) == SMALL


@pytest.mark.parametrize(
    ("right", "wrong", "rule"),
    [
        ("REQUESTS/DURATIONS", "REQUESTS", "REQUESTS/DURATIONS: no such section, or no numbers in it"),
        (
            "  2      1     4       2    0\n",
            "  2      1     4       2\n",
            "REQUESTS/DURATIONS row 2: job, mode 1, duration, demands: [2, 1, 4, 2]",
        ),
        (
            "  2      1     4       2    0\n",
            "  2      1    -4       2    0\n",
            "REQUESTS/DURATIONS row 2: job, mode 1, duration, demands: [3, 1, 2, 0, 3]",
        ),
        (
            "   3        1          1           4\n",
            "   3        1          1           5\n",
            "PRECEDENCE RELATIONS row 3: job, modes, count, successors: [3, 1, 1, 5]",
        ),
        ("   4        1          0\n", "", "PRECEDENCE RELATIONS: 3 rows for 4 jobs"),
        ("    2    3\n", "    2    3\n    1    1\n", "RESOURCEAVAILABILITIES: one row expected, found 2"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, right: str, wrong: str, rule: str) -> None:
    text = sm_text(SMALL)
    assert right in text
    file = written(tmp_path, text.replace(right, wrong))
    with pytest.raises(InvalidInput) as refused:
        read_project(file)
    assert str(refused.value) == f"{file}: {rule}"
