"""How much of the work a plan says is measured, declared, assumed: told alike everywhere, and never more than is known.

a 4 s, measured 6 s   b 2 x 3 s, declared   c nobody knows: 1 s      of 13 core-seconds 6, 6 and 1
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import Measured, State
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.measurements import apply_measurements, list_measured
from airflow_dagsched.plan.plan_types import Plan, WorkShares
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Run
from airflow_dagsched.plan.replan.remaining_run import replan_run
from airflow_dagsched.plan.report.page import explain_plan
from airflow_dagsched.plan.report.picture import draw_svg
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import drawn, standalone

CLUSTER = standalone(4, 4)
FLOW = drawn("a == b; b == c", a={"runtime_s": 4.0}, b={"runtime_s": 3.0, "parallelism": 2})
STATE = State(measured={"a": Measured(runtime_s=6.0), "c": Measured(memory_mb=10)})
ORIGINS = "measured", "declared", "assumed"
PROOF = "no plan can"
"""Of words that tell a bound."""


def planned(flow: Dataflow, state: State, told: Settings) -> tuple[Plan, Dataflow]:
    known, cluster = apply_measurements(flow, CLUSTER, state, settings=told)
    return plan(known, cluster, told, run=Run(measured=list_measured(state))), known


def test_shares_are_of_the_work_as_it_is_planned() -> None:
    made, known = planned(FLOW, STATE, Settings())
    shares = {"measured": 0.461538, "declared": 0.461538, "assumed": 0.076923}
    assert made.work == WorkShares(**shares, assumed_s=1, assumed_steps=1, assumed_task_s=10)
    assert check_strictly(made, known, CLUSTER, state=STATE) == ()
    assert "8% of the work is assumed (1 s a step, 1 step): seconds are a guess; 46% is measured, 46% is declared" in (
        " ".join(explain_plan(made).split())
    )


def test_part_way_through_a_run_shares_are_of_all_of_it() -> None:
    made, _ = planned(FLOW, State(), Settings(apart=(("a", "b"),)))
    begun = replace(STATE, finished=("launch_a",))
    again = replan_run(made, FLOW, CLUSTER, begun, Settings(apart=(("a", "b"),))).plan
    assert again.work == planned(FLOW, STATE, Settings())[0].work


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.001, 1.0, 3600.0, 1e12]), st.integers(1, 5), st.sampled_from([None, 0.0, 2.5, 1e6])
    ),
    max_size=6,
)


@given(STEPS, st.sampled_from([0.0, 1.0, 30.0]))
@settings(max_examples=60, deadline=None)
def test_shares_sum_to_one_and_are_those_of_the_file(steps: list[tuple[float, int, float | None]], each: float) -> None:
    names = [f"s{at}" for at in range(len(steps))]
    flow = drawn("", **{name: {"runtime_s": s, "parallelism": n} for name, (s, n, _) in zip(names, steps, strict=True)})
    state = State(measured={name: Measured(runtime_s=s) for name, (_, _, s) in zip(names, steps, strict=True)})
    told = Settings(step_runtime_s=each)
    made, known = planned(flow, state, told)
    work = dict.fromkeys(ORIGINS, Fraction())
    for declared, count, seen in steps:
        used = declared if seen is None else seen
        origin = "assumed" if not used else "declared" if seen is None else "measured"
        work[origin] += Fraction(used or each) * count
    whole = sum(work.values())
    assert made.work is not None
    shares = {origin: getattr(made.work, origin) for origin in ORIGINS}
    if whole:
        assert shares == pytest.approx({origin: float(of / whole) for origin, of in work.items()}, abs=1e-6)
    assert sum(shares.values()) == pytest.approx(1.0 if steps else 0.0, abs=2e-6)
    assert check_strictly(made, known, CLUSTER, told, state=state) == ()
    for text in (explain_plan(made), draw_svg(made)):
        assert (PROOF in " ".join(text.split())) == (made.work.assumed < 1)
        assert ("with these runtimes" in " ".join(text.split())) == (made.work.assumed < 1)
        assert ("seconds are a guess" in " ".join(text.split())) == bool(made.work.assumed_steps)


def test_what_is_all_assumed_is_a_guess_and_no_proof() -> None:
    made = plan(drawn("a == b; b == c"), CLUSTER)
    head = explain_plan(made).splitlines()[:3]
    assert head[1:] == [
        "predicted 11.0 s",
        "all of the work is assumed (1 s a step, 3 steps): seconds are a guess",
    ]


def test_ordinary_tasks_are_a_guess_too() -> None:
    """a, declared, ──> (t), ──> b, declared"""
    flow = drawn("a -- t; t -- b", tasks="t", a={"runtime_s": 5}, b={"runtime_s": 5})
    made = plan(flow, CLUSTER)
    guess = "1 ordinary task is assumed to take 10 s: seconds are a guess; all of the work is declared"
    assert explain_plan(made).splitlines()[2] == guess
    assert check_strictly(made, flow, CLUSTER) == ()


def test_what_is_all_declared_is_told_with_its_runtimes() -> None:
    made = plan(drawn("", a={"runtime_s": 5}), CLUSTER)
    head = explain_plan(made).splitlines()[:3]
    assert head[1:] == [
        "predicted 13.0 s, with these runtimes no plan can take less: the longest path is a",
        "all of the work is declared",
    ]
