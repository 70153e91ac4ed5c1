"""The table of a host: whatever happens in whatever order, it serves one run at a time and ends clean.

waiting ─> preparing ─> running ─> cleaning ─> idle ─> preparing ...
"""

from __future__ import annotations

from typing import get_args

from hypothesis import example, given
from hypothesis import strategies as st

from airflow_dagsched.launch.warm.serving import FIRST_WITHIN_S, TABLE, Event, Serving, State, take_event
from airflow_dagsched.launch.warm.terms import Terms

TERMS = Terms(idle_s=600.0, most_runs=3)
ONE_RUN: tuple[Event, ...] = ("asked", "prepared", "ended", "clean")


def play(*events: Event, terms: Terms = TERMS) -> tuple[Serving, list[str]]:
    """How it stands after ``events``, a second apart, and all that it had to do."""
    serving, done = Serving("waiting", 0.0), []
    for now, event in enumerate(events, 1):
        serving, commands = take_event(serving, event, float(now), terms, "because")
        done += commands
    return serving, done


def test_runs_come_one_after_another() -> None:
    serving, done = play(*ONE_RUN, *ONE_RUN)
    assert (serving.state, serving.runs) == ("idle", 2)
    first, later = ["take", "prepare", "fork"], ["prepare", "take", "fork"]
    assert done == [*first, "report", "clean", *later, "report", "clean"]


def test_a_run_that_comes_when_spark_is_gone_is_not_taken() -> None:
    """Whoever asked starts an application of its own; the first run of all hears what Spark met."""
    serving, done = play(*ONE_RUN, "asked", "unfit")
    assert (serving.state, serving.runs, done[-2:]) == ("ending", 1, ["prepare", "end"])
    assert play("asked", "prepared")[1] == ["take", "prepare", "fork"]


def test_the_last_of_its_runs_ends_it() -> None:
    serving, done = play(*ONE_RUN, *ONE_RUN, "asked", "prepared", "ended")
    assert (serving.state, serving.reason) == ("ending", "it has served 3 runs")
    assert done[-2:] == ["report", "end"]


def test_a_run_that_broke_ends_it() -> None:
    assert play("asked", "prepared", "broke")[1][-2:] == ["report", "end"]
    assert play("asked", "prepared", "left")[1][-2:] == ["kill", "end"]


def test_told_to_end_it_brings_its_run_to_its_end() -> None:
    serving, done = play("asked", "prepared", "told")
    assert (serving.state, serving.last) == ("running", "because")
    serving, done = play(*ONE_RUN, "asked", "told", "prepared", "ended")
    assert (serving.state, done[-2:]) == ("ending", ["report", "end"])
    assert play("asked", "prepared", "told_at_once")[1][-2:] == ["kill", "end"]


def test_it_waits_for_so_long() -> None:
    assert Serving("waiting", 5.0).find_deadline(TERMS) == 5.0 + FIRST_WITHIN_S
    assert Serving("idle", 5.0).find_deadline(TERMS) == 605.0
    assert Serving("running", 5.0).find_deadline(TERMS) is None


@given(st.lists(st.sampled_from(get_args(Event)), max_size=40))
@example(["asked", "told", "left", "ended"])
def test_whatever_happens(events: list[Event]) -> None:
    """Never two runs at once; each that is taken is prepared; what ends does nothing more, and says why."""
    serving, at_work = Serving("waiting", 0.0), 0
    for now, event in enumerate(events):
        was_ending = serving.state == "ending"
        serving, commands = take_event(serving, event, float(now), TERMS, "because")
        assert not (was_ending and commands)
        at_work += ("take" in commands) - ("report" in commands)
        assert at_work in (0, 1)
        assert ("fork" not in commands) or at_work == 1
        assert serving.runs <= TERMS.most_runs
        assert ("end" in commands) == (serving.state == "ending" and not was_ending)
        assert bool(serving.reason) == (serving.state == "ending")


def test_the_table_names_states_and_events_that_there_are() -> None:
    for (state, event), (after, _) in TABLE.items():
        assert {state, after} <= set(get_args(State))
        assert event in get_args(Event)
