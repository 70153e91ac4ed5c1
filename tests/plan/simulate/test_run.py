"""Simulated runs: as planned where nothing goes wrong; nothing lost or twice, no worker too full where it does."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.simulate.run import simulate_works
from airflow_dagsched.plan.simulate.values import POLICIES, Conditions, Outcome, Policy, Work
from tests.plan.drawn import clusters, dataflows, drawn, standalone

CALM = Conditions()
PLAN, FIFO, RESERVED = POLICIES["plan"], POLICIES["fifo"], POLICIES["reserved"]
conditions = st.builds(
    Conditions,
    noise=st.sampled_from([0.0, 0.3, 1.0]),
    failures_per_hour=st.sampled_from([0.0, 1.0, 100.0]),
    losses_per_hour=st.sampled_from([0.0, 1.0]),
    retries=st.integers(0, 3),
    seed=st.integers(0, 9),
)


def work(flow: Dataflow, cluster: Cluster, at_s: float = 0.0) -> Work:
    """The dataflow as planned; an example that does not fit tells nothing."""
    try:
        return Work(plan(flow, cluster), flow, at_s)
    except DoesNotFit:
        assume(False)
        raise


def single(cores: int, runtime_s: float, **step: object) -> Dataflow:
    """One step of one instance."""
    return drawn("a", a={"cores": cores, "runtime_s": runtime_s, **step})


def times(found: Outcome) -> dict[str, tuple[float, float]]:
    return {one.job: (one.start_s, one.end_s) for one in found.ran}


@settings(max_examples=40, deadline=None)
@given(dataflows(), clusters(), st.floats(0, 1000))
def test_where_nothing_goes_wrong_it_runs_as_planned(flow: Dataflow, cluster: Cluster, at_s: float) -> None:
    asked = work(flow, cluster, at_s)
    found = simulate_works([asked], cluster, CALM, PLAN)
    assert found.completion_s == (pytest.approx(asked.plan.makespan_s, abs=1e-3),)
    planned = {group.id: (at_s + group.start_s, at_s + group.end_s) for group in asked.plan.groups}
    assert {name: span for name, span in times(found).items() if name in planned} == {
        name: pytest.approx(span, abs=1e-3) for name, span in planned.items()
    }
    assert (found.unfinished, found.retries, found.lost_workers) == ((), 0, 0)


@settings(max_examples=50, deadline=None)
@given(dataflows(most=60), clusters(), conditions, st.sampled_from(sorted(POLICIES)))
def test_every_job_ends_once_after_all_it_waits_for(
    flow: Dataflow, cluster: Cluster, met: Conditions, policy: str
) -> None:
    asked = work(flow, cluster)
    works = [asked, Work(asked.plan, asked.dataflow, at_s=30.0)]
    found = simulate_works(works, cluster, met, POLICIES[policy])
    jobs = [(at, name) for at in range(2) for name in (*(g.id for g in asked.plan.groups), *(t.id for t in flow.tasks))]
    ended = [(one.work, one.job) for one in found.ran]
    assert Counter([*ended, *found.unfinished]) == Counter(jobs)
    ends = {(one.work, one.job): one.end_s for one in found.ran}
    for one in found.ran:
        after = next((group.after for group in asked.plan.groups if group.id == one.job), ())
        assert max((ends[one.work, name] for name in after), default=0.0) <= one.ready_s <= one.start_s <= one.end_s
        assert 1 <= one.attempts <= met.retries + 1
    assert [end is None for end in found.completion_s] == [any(at == w for w, _ in found.unfinished) for at in range(2)]
    assert 0 <= found.utilisation <= 1 + 1e-9


@settings(max_examples=25, deadline=None)
@given(dataflows(most=60), clusters(), st.sampled_from(sorted(POLICIES)))
def test_no_more_cores_are_held_than_there_are(flow: Dataflow, cluster: Cluster, policy: str) -> None:
    asked = work(flow, cluster)
    found = simulate_works([asked] * 3, cluster, Conditions(noise=0.5), POLICIES[policy])
    cores = {group.id: sum(box.cores for box in group.containers) for group in asked.plan.groups}
    changes = sorted(
        change
        for one in found.ran
        if one.end_s > one.start_s
        for change in ((one.start_s, cores.get(one.job, 0)), (one.end_s, -cores.get(one.job, 0)))
    )
    held = 0
    for _, change in changes:
        held += change
        assert held <= sum(worker.cores for worker in cluster.workers)
    assert found.unfinished == ()


@settings(max_examples=30, deadline=None)
@given(dataflows(most=40), clusters(), conditions, st.integers(0, 2**32))
def test_equal_inputs_in_any_order_give_the_same_outcome(
    flow: Dataflow, cluster: Cluster, met: Conditions, seed: int
) -> None:
    rng = random.Random(seed)
    asked = work(flow, cluster)
    other = replace(
        flow,
        steps=tuple(rng.sample(flow.steps, len(flow.steps))),
        tasks=tuple(rng.sample(flow.tasks, len(flow.tasks))),
        dependencies=tuple(rng.sample(flow.dependencies, len(flow.dependencies))),
    )
    for policy in POLICIES.values():
        assert simulate_works([Work(asked.plan, other)], cluster, met, policy) == simulate_works(
            [asked], cluster, met, policy
        )


def test_noise_changes_runtimes_but_not_their_mean() -> None:
    """A step of 100 s, 8 s to start it: 400 runs with noise 0.5 end after 108 s on average, and never twice alike."""
    cluster = standalone(4)
    asked = work(single(1, 100), cluster)
    ends = [simulate_works([asked], cluster, Conditions(noise=0.5, seed=seed), PLAN).makespan_s for seed in range(400)]
    assert sum(ends) / len(ends) == pytest.approx(108, rel=0.06)
    assert len(set(ends)) == len(ends)


def test_a_failed_group_is_tried_again_from_its_start() -> None:
    """a ──> (t) ──> b, 108 s each with the start, failing 15 times an hour: about one attempt in three."""
    cluster = standalone(4)
    asked = work(drawn("a -- t; t -- b", tasks="t", a={"runtime_s": 100}, b={"runtime_s": 100}), cluster)
    runs = [simulate_works([asked], cluster, Conditions(failures_per_hour=15, seed=seed), PLAN) for seed in range(100)]
    for found in runs:
        for one in found.ran:
            assert one.end_s - one.start_s == pytest.approx(10 if one.job == "t" else 108)
            assert (one.attempts > 1) == (one.start_s > max(one.ready_s, planned_start(asked, one.job)))
    attempts = sum(found.retries for found in runs) + 200
    assert attempts / 200 == pytest.approx(2.718 ** (108 * 15 / 3600), rel=0.1)


def planned_start(asked: Work, job: str) -> float:
    return next((group.start_s for group in asked.plan.groups if group.id == job), 0.0)


def test_what_fails_too_often_is_never_done_nor_what_waits_for_it() -> None:
    """Both applications need 10,000 s without failure, at a failure every 36 s."""
    cluster = standalone(4)
    asked = work(drawn("a -- t; t -- b", tasks="t", a={"runtime_s": 10_000}), cluster)
    found = simulate_works([asked], cluster, Conditions(failures_per_hour=100, retries=2), PLAN)
    assert found.unfinished == ((0, "launch_a"), (0, "launch_b"), (0, "t"))
    assert (found.ran, found.completion_s, found.retries) == ((), (None,), 2)


def test_a_group_moves_from_a_lost_worker_to_another() -> None:
    """w1, where it was planned, is lost in its 10,000 s in most of the runs; w2 then holds it, if still there."""
    cluster = standalone(4, 4)
    asked = work(single(4, 10_000), cluster)
    runs = [simulate_works([asked], cluster, Conditions(losses_per_hour=0.3, seed=seed), PLAN) for seed in range(50)]
    assert all(bool(found.unfinished) <= (found.lost_workers == 0 or found.makespan_s == 0) for found in runs)
    moved = [found for found in runs if found.retries and not found.unfinished]
    assert moved
    assert all(found.lost_workers and found.makespan_s > 10_008 for found in moved)


def test_a_pinned_step_waits_for_its_worker() -> None:
    """Two works want w2, the one on which their step may be; w1 stays empty."""
    cluster = standalone(4, 4)
    asked = work(single(4, 20, pinned=("w2",)), cluster)
    for policy in POLICIES.values():
        assert [one.start_s for one in simulate_works([asked, asked], cluster, CALM, policy).ran] == [0, 28]


@pytest.mark.parametrize(("policy", "last"), [(FIFO, 36), (Policy("fifo"), 0)])
def test_what_fits_beside_those_that_wait_goes_ahead_if_it_may(policy: Policy, last: int) -> None:
    """On 8 cores 4 and 2 are taken for 28 s; the third wants all 8 for 8 s, the fourth 2."""
    cluster = standalone(4, 4)
    wanted = [(4, 20.0), (2, 20.0), (8, 0.001), (2, 1.0)]
    works = [work(single(1, seconds, parallelism=cores), cluster) for cores, seconds in wanted]
    found = simulate_works(works, cluster, CALM, policy)
    assert [round(one.start_s) for one in found.ran] == [0, 0, 28, last]


def launches(cluster: Cluster) -> list[Work]:
    """Ten dataflows at once, of very different width and length, each planned as if it were alone."""
    rng = random.Random(5)
    shapes = [(rng.choice([1, 2, 8, 16, 30]), rng.choice([20, 60, 300])) for _ in range(10)]
    return [
        work(drawn("a -- t; t -- b", tasks="t", a={"parallelism": n, "runtime_s": s}, b={"runtime_s": s / 2}), cluster)
        for n, s in shapes
    ]


def test_ten_launches_that_reserve_their_cores_beat_first_come_first_served() -> None:
    """On the mean of their completions and on the worst."""
    cluster = standalone(*[8] * 4)
    fifo, reserved = (
        simulate_works(launches(cluster), cluster, CALM, policy).completion_s for policy in (FIFO, RESERVED)
    )
    assert sum(end or 0 for end in reserved) < sum(end or 0 for end in fifo)
    assert max(end or 0 for end in reserved) < max(end or 0 for end in fifo)


def test_a_plan_of_another_cluster_is_refused() -> None:
    asked = work(single(1, 1), standalone(4))
    with pytest.raises(InvalidInput, match="no worker of the cluster is called 'w1'"):
        simulate_works([asked], Cluster(manager="yarn"), CALM, PLAN)


def test_nothing_to_run_takes_no_time() -> None:
    found = simulate_works([work(Dataflow(name="empty"), standalone(1))], standalone(1), CALM, PLAN)
    assert (found.completion_s, found.makespan_s, found.utilisation) == ((0.0,), 0.0, 0.0)
