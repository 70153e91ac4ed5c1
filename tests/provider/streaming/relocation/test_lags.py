"""What the policy is told of a stream's state: by the log, the signs of life, and where its epochs were planned."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.model.state import Assignment, Lag
from airflow_dagsched.provider.streaming.relocation.lags import assume_caught_up, find_active, tell_state
from airflow_dagsched.switch.signs import FRESH_S, Seen, Sign
from airflow_dagsched.switch.story import Story
from tests.switch.drawn import FIRST, go_on, make_batch, make_epoch, make_started, tell

STATE = ("s/0", "s/1")
WORKERS = [Worker(id=name, host=f"host {name}", cores=4, memory_mb=4096) for name in ("a", "b", "c")]
ON_A = Assignment(active={"s/0": "a", "s/1": "a", "out/0": "a"}, moved={"s/0": "digest"})
ON_B = Assignment(active={"s/0": "b", "s/1": "b", "out/0": "b"})
ONE = go_on(tell(*FIRST), make_batch(1, 1, 10, 100))
BOTH = go_on(ONE, make_epoch(2, fingerprint="code 1", x_read={"out": 0}), make_started(2))


def see(*held: int, hosts: tuple[str, ...] = (), at: float = 0.0, state_rows: int = 0) -> Seen:
    signs = {each: Sign(each, "app", at, "running", hosts=hosts, state_rows=state_rows) for each in held[:1]}
    return Seen(0.0, held=frozenset(held), signs=signs)


def test_it_runs_where_its_epoch_does():
    found = tell_state(ONE, see(1), {1: ON_A}, STATE, WORKERS)
    assert found.lags == tuple(Lag(instance=each, worker="a", running=True) for each in STATE)
    assert found.previous == ON_A


def test_elsewhere_it_is_behind_by_all_rows_of_its_state():
    assert tell_state(ONE, see(1, state_rows=900), {1: ON_A}, STATE, WORKERS).offsets == {"s/0": 450, "s/1": 450}
    assert tell_state(ONE, see(1), {1: ON_A}, STATE, WORKERS).offsets == {}, "nobody has counted them"


@pytest.mark.parametrize(("watermark", "behind"), [(None, None), (30.0, 70.0), (100.0, 0.0), (130.0, 0.0)])
def test_a_warm_up_is_behind_by_rows_and_event_time(watermark: float | None, behind: float | None):
    story = BOTH if watermark is None else go_on(BOTH, make_batch(2, 0, kept=0, watermark=watermark))
    found = tell_state(story, see(1, 2), {1: ON_A, 2: ON_B}, STATE, WORKERS)
    assert [each for each in found.lags if each.worker == "b"] == [
        Lag(instance=name, worker="b", rows=0, seconds=behind) for name in STATE
    ]


def test_a_warm_up_on_the_owner_s_own_worker_is_no_second_lag():
    story = go_on(BOTH, make_batch(2, 0, kept=0, watermark=30.0))
    found = tell_state(story, see(1, 2), {1: ON_A, 2: ON_A}, STATE, WORKERS)
    assert all(each.running for each in found.lags)
    assert len(found.lags) == 2


@pytest.mark.parametrize(
    ("story", "held", "planned"), [(Story(), (), {}), (ONE, (), {1: ON_A}), (ONE, (1,), {}), (BOTH, (2,), {2: ON_B})]
)
def test_where_the_owner_does_not_run_nothing_is_known(story: Story, held: tuple[int, ...], planned: Any):
    found = tell_state(story, see(*held), planned, STATE, WORKERS)
    assert (found.lags, found.previous) == ((), None)


def test_executors_that_came_up_elsewhere_count_and_not_the_plan():
    found = tell_state(ONE, see(1, hosts=("host c", "host b")), {1: ON_A}, STATE, WORKERS)
    assert found.previous is not None
    assert set(found.previous.active.values()) == {"b", "c"}


def test_an_old_sign_tells_of_no_executors():
    found = tell_state(ONE, see(1, hosts=("host c",), at=-FRESH_S - 1), {1: ON_A}, STATE, WORKERS)
    assert found.previous == ON_A


def test_what_was_on_a_worker_that_is_gone_is_told_so_unless_it_runs_elsewhere():
    assert find_active(ON_A, (), WORKERS[1:]) == ON_A.active
    assert find_active(ON_A, ("host b",), WORKERS[1:]) == dict.fromkeys(ON_A.active, "b")
    assert find_active(ON_A, ("host of nobody",), WORKERS[1:]) == ON_A.active


def test_a_new_graph_has_caught_up_wherever_it_is_when_it_takes_over():
    found = assume_caught_up(tell_state(ONE, see(1, state_rows=900), {1: ON_A}, STATE, WORKERS), STATE, WORKERS)
    assert [each.worker for each in found.lags if each.running] == ["a", "a"]
    assert {(each.rows, each.seconds) for each in found.lags if not each.running} == {(0, 0.0)}
    assert len(found.lags) == len(STATE) * len(WORKERS)
