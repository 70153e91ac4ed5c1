"""The page of streaming graphs says what the tables of the protocol say."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_dagsched.switch.diagram import draw_states
from airflow_dagsched.switch.records import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "streaming.md").read_text()


def test_the_drawing_of_the_states_is_made_of_the_tables():
    """If it differs: print ``airflow_dagsched.switch.diagram.draw_states()`` in its place, and read the difference."""
    assert re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL) == [draw_states()]


def test_every_kind_of_record_is_explained_and_no_other():
    (table,) = re.findall(r"\| kind \| says \|\n(.*?)\n\n", PAGE, re.DOTALL)
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(KINDS)
