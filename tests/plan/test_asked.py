"""Each thing an author may ask for has a line on the page, with where it is in the plan."""

from __future__ import annotations

from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.report.page import explain_plan
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import drawn, standalone

MIB = 2**20
HOUR = {"runtime_s": 3600.0}


def said(made: Plan) -> tuple[str, ...]:
    """All of it is on the page."""
    page = explain_plan(made)
    assert all(sentence in page for sentence in made.asked)
    return made.asked


def test_nothing_asked_nothing_said() -> None:
    assert said(plan(drawn("a == b"), standalone(4))) == ()


def test_steps_apart_together_alone_and_few() -> None:
    """a ══> b ══> c ══> d ══> e, e isolated"""
    told = Settings(apart=(("d", "a"),), together=(("c", "b"),), max_steps_per_group=3)
    made = plan(drawn("a == b; b == c; c == d; d == e", e={"isolate": True}), standalone(4), told)
    assert said(made) == (
        "isolate: 'e' alone in 'launch_e'",
        "apart: 'a' in 'launch_a', 'd' in 'launch_d'",
        "together: 'b', 'c' in 'launch_a'",
        "max_steps_per_group: 3, the largest group has 3 steps",
    )
    assert {spill.src: spill.reason for spill in made.spills} == {
        "c": "the settings keep steps of the two groups apart",
        "d": "step 'e' is isolated by its author",
    }


def test_the_most_steps_of_a_group_is_a_reason() -> None:
    made = plan(drawn("a == b"), standalone(4), Settings(max_steps_per_group=1))
    assert made.spills[0].reason == "the settings allow 1 step a group"


def test_a_checkpoint_says_that_it_is_one() -> None:
    """A failure an hour: (e^2.002 - 1) h, 6 h 24 min, in one piece; 2 (e^1.002 - 1) h, 3 h 27 min, in two."""
    made = plan(drawn("a == b", a=HOUR, b=HOUR), standalone(4), Settings(failures_per_hour=1.0))
    assert said(made) == ("failures_per_hour: 1, with the repeats to expect it ends after 3 h 27 min",)
    assert made.spills[0].reason.startswith("a checkpoint: ends 2 h 57 min sooner than one group of both")
    assert made.makespan_s == 2 * (8 + 3600)


def test_spills_at_once_are_counted() -> None:
    """a ══100 MiB══> b ══50 MiB══> c, all apart: a's is gone once b has ended, so both are there while b runs."""
    told = Settings(apart=(("a", "b", "c"),))
    made = plan(drawn("a == b; b == c", size={"a": 100 * MIB, "b": 50 * MIB}), standalone(4, spill_mb=400), told)
    assert said(made)[-1] == "spill_mb: at most 150.0 MiB of spills at once, of 400 MiB"
