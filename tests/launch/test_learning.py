"""What applications measured is what the next ones are planned with: medians, and only of what was really run."""

from __future__ import annotations

from typing import Any

from airflow_dagsched.launch.history.learning import NOTHING_S, Ran, update_history
from airflow_dagsched.launch.protocol.events import LeftOut, StepDone
from airflow_dagsched.model.state import Connection, KeptColumns, Measured, MeasuredOutput, State, forget_other_code


def ran(*ends: StepDone, seconds: float = 30.0, cores: int = 4, **more: Any) -> Ran:
    return Ran(seconds, cores, ends, more.pop("begun", {done.step: 6.0 for done in ends}), **more)


def test_a_job_is_counted_once() -> None:
    """9 s for a, b and c together are c's; what failed or was reused teaches nothing."""
    state = update_history(
        State(),
        "spark",
        [
            ran(
                StepDone("a", "success", seconds=9.0, fused=("b", "c")),
                StepDone("b", "success", seconds=9.0, fused=("a", "c")),
                StepDone("c", "success", seconds=9.0, fused=("a", "b"), bytes=5),
                StepDone("d", "reused", seconds=1.0),
                StepDone("e", "failed", seconds=1.0),
            )
        ],
    )
    assert {name: (seen.runtime_s, seen.bytes) for name, seen in state.measured.items()} == {
        "a": (NOTHING_S, None),
        "b": (NOTHING_S, None),
        "c": (9.0, 5),
    }


def test_a_start_is_all_but_the_steps() -> None:
    """30 s in all; a from 6 to 16, b from 8 to 26: 30 - (26 - 6)."""
    ends = StepDone("a", "success", seconds=10.0), StepDone("b", "success", seconds=18.0)
    state = update_history(State(), "spark", [ran(*ends, begun={"a": 6.0, "b": 8.0})])
    assert state.connections == {"spark": Connection(application_start_s=10.0, recent_start_s=(10.0,))}


def test_a_warm_start_is_another_one_than_a_cold() -> None:
    """18 s of steps, of 30 s in an application of its own, of 18.5 s in one that was there."""
    end = StepDone("a", "success", seconds=18.0)
    state = update_history(State(), "spark", [ran(end, seconds=30.0), ran(end, seconds=18.5, warm=True)])
    assert state.connections["spark"] == Connection(
        application_start_s=12.0, recent_start_s=(12.0,), warm_start_s=0.5, recent_warm_s=(0.5,)
    )


def test_medians_of_the_last_five_runs() -> None:
    """99, 3, 1, 2, 5, 4: the first is forgotten."""
    state = State()
    for seconds in (99.0, 3.0, 1.0, 2.0, 5.0, 4.0):
        state = update_history(state, "spark", [ran(StepDone("a", "success", seconds=seconds, bytes=int(seconds)))])
    expected = Measured(runtime_s=3.0, bytes=3, recent_s=(3.0, 1.0, 2.0, 5.0, 4.0), recent_bytes=(3, 1, 2, 5, 4))
    assert state.measured == {"a": expected}


def test_each_output_by_itself() -> None:
    """good is stored: 6, 8, then 8 bytes. bad is counted alone, 5 rows of 20 bytes, later 7."""
    state = State()
    for size, guess in ((6, 100), (8, 100), (8, 140)):
        done = StepDone("a", "success", seconds=1.0, sizes={"good": size}, assumed={"bad": guess})
        state = update_history(state, "spark", [ran(done)])
    assert state.measured["a"].outputs == {
        "good": MeasuredOutput(bytes=8, recent_bytes=(6, 8, 8)),
        "bad": MeasuredOutput(assumed_bytes=140),
    }


def test_what_was_kept_of_the_columns_is_of_the_last_run() -> None:
    """7 of 36, then all of them."""
    some = StepDone("a", "success", seconds=1.0, assumed={"": 100}, left_out={"": LeftOut(36, 7, 0.19444)})
    state = update_history(State(), "spark", [ran(some, codes={"a": "c0de"})])
    kept = KeptColumns(columns=36, kept=7, share=0.1944, code="c0de")
    assert state.measured["a"].outputs == {"": MeasuredOutput(assumed_bytes=100, columns=kept)}
    assert forget_other_code(state, {"a": "c0de"}) == state
    assert forget_other_code(state, {"a": "another"}).measured["a"].outputs[""].columns is None
    whole = StepDone("a", "success", seconds=1.0, assumed={"": 500})
    state = update_history(state, "spark", [ran(whole, codes={"a": "c0de"})])
    assert state.measured["a"].outputs == {"": MeasuredOutput(assumed_bytes=500)}


def test_what_ran_out_of_memory_needs_what_it_got_then() -> None:
    """And no less later: a lucky run proves no smaller need."""
    done = StepDone("a", "success", seconds=1.0)
    state = update_history(State(), "spark", [ran(done, memory_mb={"a": 2048}), ran(done)])
    assert state.measured["a"].memory_mb == 2048


def test_bandwidth_by_the_fastest_large_dataset() -> None:
    """64 MiB in 0.5 s; small ones, and tables, say nothing."""
    mib = 2**20
    ends = (
        StepDone("a", "success", seconds=0.5, bytes=64 * mib, datasets={"": "/d"}),
        StepDone("b", "success", seconds=0.001, bytes=mib, datasets={"": "/d"}),
        StepDone("c", "success", seconds=0.1, bytes=640 * mib),
    )
    assert update_history(State(), "spark", [ran(*ends)]).connections["spark"].spill_mb_s == 128.0


def test_an_application_that_ran_no_step_teaches_nothing() -> None:
    state = update_history(State(), "spark", [ran(StepDone("a", "reused"))])
    assert (state.measured, state.connections["spark"]) == ({}, Connection())
