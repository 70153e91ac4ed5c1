"""Measured values in place of declared ones: they cost or save time, and refuse nothing."""

from __future__ import annotations

from airflow_dagsched.model.state import Connection, Measured, State
from airflow_dagsched.plan.measurements import apply_measurements
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from tests.plan.drawn import drawn, standalone


def test_measured_memory_never_refuses_a_launch() -> None:
    """16 GiB were seen on another cluster; here an instance gets what the largest worker has."""
    flow, cluster = drawn("a == b", a={"memory_mb": 100}), standalone(2, memory_mb=4000)
    state = State(measured={"a": Measured(memory_mb=16_384)})
    told, _ = apply_measurements(flow, cluster, state)
    assert {step.id: step.memory_mb for step in told.steps} == {"a": 4000 - 384, "b": 0}
    assert plan(told, cluster).groups[0].containers[0].memory_mb == 4000


def test_what_the_author_declares_counts_in_full() -> None:
    flow, cluster = drawn("a", a={"memory_mb": 9000}), standalone(2, memory_mb=4000)
    told, _ = apply_measurements(flow, cluster, State(measured={"a": Measured(memory_mb=5000)}))
    assert told.steps[0].memory_mb == 9000


def test_each_connection_has_its_own_start() -> None:
    state = State(
        connections={"near": Connection(application_start_s=3.0, spill_mb_s=900.0), "far": Connection(spill_mb_s=1.0)}
    )
    cluster = standalone(2)
    found = [
        apply_measurements(drawn("a"), cluster, state, connection=name)[1] for name in ("near", "far", "other", None)
    ]
    assert [(at.application_start_s, at.spill_mb_s) for at in found] == [(3.0, 900.0), *[(8.0, 200.0)] * 3]


def test_a_warm_application_costs_what_one_took_to_take_a_run() -> None:
    """Each kind of start is known by itself, and a warm one is never dearer than a cold one."""
    warm, cluster, flow = Settings(warm=True), standalone(2), drawn("a")
    for seen, cold_s, warm_s in (
        (Connection(), 8.0, 1.0),
        (Connection(application_start_s=5.0, warm_start_s=0.4), 5.0, 0.4),
        (Connection(application_start_s=5.0, warm_start_s=7.0), 5.0, 5.0),
    ):
        state = State(connections={"c": seen})
        starts = [apply_measurements(flow, cluster, state, settings=each)[1] for each in (DEFAULTS, warm)]
        assert [plan(flow, each).groups[0].time.start for each in starts] == [cold_s, warm_s]
