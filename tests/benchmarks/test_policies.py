"""What schedules are compared with: each against a second way to find the same."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from airflow_dagsched.plan.rcpsp.parallel import schedule_in_parallel
from airflow_dagsched.plan.rcpsp.paths import measure_tails
from airflow_dagsched.plan.rcpsp.project import Project, build_network
from benchmarks.policies import Tasks, airflow_default, b_level, fifo, heft, upward_ranks, without_transfers

CHAIN_BESIDE_CROWD = without_transfers([1, 8, 3, 3, 3, 3], [[1], [], [], [], [], []])
"""0(1) ──> 1(8), and 2 3 4 5 of 3 seconds each, on two workers."""


def random_tasks(seed: int, *, transfers: bool) -> Tasks:
    rng = random.Random(seed)
    count = rng.randint(1, 40)
    successors = [
        sorted(rng.sample(range(at + 1, count), min(count - at - 1, rng.randint(0, 3)))) for at in range(count)
    ]
    times = [[rng.random() * 5 if transfers else 0.0 for _ in nexts] for nexts in successors]
    return Tasks([rng.randint(1, 9) for _ in range(count)], successors, times)


def test_the_longest_path_goes_first() -> None:
    assert b_level(CHAIN_BESIDE_CROWD, 2) == 12


def test_what_is_ready_first_goes_first() -> None:
    """1 is ready at 1, but the crowd was before: it has a worker from 6 to 14."""
    assert fifo(CHAIN_BESIDE_CROWD, 2) == 14


def test_airflow_counts_tasks_and_not_their_time() -> None:
    """
    0(9)                  nothing is below it, so it comes after
    1 ──> 2, 3 ──> 4      1 and 3, of 1 second each
    """
    tasks = without_transfers([9, 1, 1, 1, 1], [[], [2], [], [4], []])
    assert (airflow_default(tasks, 2), b_level(tasks, 2)) == (10, 9)


@pytest.mark.parametrize("seed", range(40))
def test_list_scheduling_is_the_parallel_scheme_on_one_resource(seed: int) -> None:
    tasks = random_tasks(seed, transfers=False)
    count = len(tasks.seconds)
    project = Project(
        durations=tuple(int(seconds) for seconds in tasks.seconds),
        demands=((1,),) * count,
        successors=tuple(tuple(nexts) for nexts in tasks.successors),
        capacities=(3,),
    )
    net = build_network(project)
    rank = [-tail - duration for tail, duration in zip(measure_tails(net), net.durations, strict=True)]
    assert max(schedule_in_parallel(net, rank)) == b_level(tasks, 3)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("transfers", [False, True])
def test_heft_takes_the_earliest_end_of_all_there_are(seed: int, transfers: bool) -> None:
    tasks = random_tasks(seed, transfers=transfers)
    assert heft(tasks, 3) == pytest.approx(heft_by_trial(tasks, 3))


def heft_by_trial(tasks: Tasks, workers: int) -> float:
    """Every task in order of upward rank tries every begin that can be the earliest, on every worker."""
    rank = upward_ranks(tasks)
    spans: dict[int, tuple[float, float, int]] = {}
    for task in sorted(range(len(rank)), key=rank.__getitem__, reverse=True):
        tries = [
            (begin + tasks.seconds[task], worker, begin)
            for worker in range(workers)
            for begin in _begins(tasks, task, worker, spans)
        ]
        end, worker, begin = min(tries)
        spans[task] = begin, end, worker
    return max(end for _, end, _ in spans.values())


def _begins(tasks: Tasks, task: int, worker: int, spans: dict[int, tuple[float, float, int]]) -> Sequence[float]:
    ready = max(
        (_arrival(tasks, before, task, worker, spans[before]) for before in spans if task in tasks.successors[before]),
        default=0.0,
    )
    here = [(begin, end) for begin, end, home in spans.values() if home == worker]
    candidates = [ready, *(end for _, end in here if end >= ready)]
    length = tasks.seconds[task]
    return [at for at in candidates if all(end <= at or at + length <= begin for begin, end in here)]


def _arrival(tasks: Tasks, before: int, task: int, worker: int, span: tuple[float, float, int]) -> float:
    moved = tasks.transfer_s[before][tasks.successors[before].index(task)]
    return span[1] + (moved if span[2] != worker else 0.0)
