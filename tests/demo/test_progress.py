"""The lines a person sees, from what the grid and the launch task say."""

import io

from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import Feed
from demo.progress import Display, StepLine, line, texts, told
from demo.results import summarize

FEED = Feed(
    "n", "", running=("b",), steps={"a": StepDone("a", "success", 1894, seconds=1.25), "r": StepDone("r", "reused")}
)


def test_the_grid_says_how_a_step_ended_and_the_feed_what_runs() -> None:
    """A step whose end has not reached the grid is not shown as ended."""
    said = told({"flow.launch": FEED})
    seen = [
        line(f"flow.{step}", state, said) for step, state in [("a", "success"), ("r", "success"), ("b", "deferred")]
    ]
    seen += [line("flow.a", "deferred", said), line("flow.c", "deferred", said), line("flow.c", "failed", said)]
    assert texts(seen) == [
        "  a  success               1,894 rows     1.2 s",
        "  r  reused",
        "  b  running",
        "  a  running",
        "  c  waiting",
        "  c  failed",
    ]


def test_without_a_terminal_only_changes_are_printed() -> None:
    out, first = io.StringIO(), (StepLine("a", "waiting"), StepLine("b", "waiting"))
    display = Display(out)
    ended = (StepLine("a", "success", 3), first[1])
    for lines in (first, ended, ended):
        display.show(lines)
    assert out.getvalue().splitlines() == ["  a  success                   3 rows"]


def test_summary_adds_up_the_groups() -> None:
    """1 + 2 applications, 10.25 + 5 s predicted, 12 + 6 s measured."""
    launches = [
        {"applications": 1, "predicted_s": 10.25, "measured_s": 12.0},
        {"applications": 2, "predicted_s": 5.0, "measured_s": 6.0},
    ]
    assert summarize(20, launches) == "20 steps, 3 Spark applications instead of 20, predicted 15.2 s / measured 18.0 s"
