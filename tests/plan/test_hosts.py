"""Exclusion tokens: any set of workers can be had, no other worker is let in, nothing is asked that nobody offers."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.launch.managers.standalone.tokens import Offer
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from airflow_dagsched.plan.passes.pin_hosts import choose_exclusion, count_containers, deal_in_turn, is_token
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.report.page import explain_plan
from tests.plan.drawn import drawn, standalone
from tests.plan.test_held_sizes import BEFORE, GROWN, place


def slotted(workers: int, slots: int, cores: int = 4) -> list[Worker]:
    """``w1`` in slot 1, and so on."""
    return [
        Worker(id=f"w{at}", host=f"h{at}", cores=cores, memory_mb=8000, tokens=Offer(at, slots).tokens)
        for at in range(1, workers + 1)
    ]


def test_the_drawing() -> None:
    """
    worker   slot   offers                  asked not_1, not_3
    w1       1             not_2 not_3      -
    w2       2      not_1        not_3      executors
    w3       3      not_1 not_2             -
    """
    found = choose_exclusion({"w2": 1}, slotted(3, slots=3))
    assert (found.tokens, found.kept_out, found.open) == (("not_1", "not_3"), ("w1", "w3"), ())


@given(st.integers(1, 12), st.integers(0, 4), st.data())
def test_any_set_of_workers_and_no_other(count: int, spare: int, data: st.DataObject) -> None:
    workers = slotted(count, count + spare)
    names = [worker.id for worker in workers]
    chosen = data.draw(st.sets(st.sampled_from(names), min_size=1))
    asked = set(choose_exclusion(dict.fromkeys(chosen, 1), workers).tokens)
    assert {worker.id for worker in workers if asked <= set(worker.tokens)} == chosen


@given(st.lists(st.sets(st.sampled_from("abcdef")), min_size=1, max_size=8), st.data())
def test_whatever_is_offered_the_chosen_are_let_in_and_the_rest_is_told(
    offers: list[set[str]], data: st.DataObject
) -> None:
    workers = [Worker(id=f"w{at}", host="h", cores=1, memory_mb=1, tokens=tuple(o)) for at, o in enumerate(offers)]
    chosen = data.draw(st.sets(st.sampled_from([worker.id for worker in workers]), min_size=1))
    found = choose_exclusion(dict.fromkeys(chosen, 1), workers)
    let_in = {worker.id for worker in workers if set(found.tokens) <= set(worker.tokens)}
    assert let_in == chosen | set(found.open)
    assert set(found.kept_out) | let_in == {worker.id for worker in workers}


def test_the_order_of_workers_means_nothing() -> None:
    workers = slotted(5, slots=8)
    assert choose_exclusion({"w2": 1, "w4": 1}, workers) == choose_exclusion({"w4": 1, "w2": 1}, workers[::-1])


def test_a_token_that_runs_out_is_not_asked_for() -> None:
    """Two containers on w1, where one ``not_2`` is left: the second would wait for ever."""
    one, two = slotted(2, slots=2)
    one = replace(one, free=Free(resources={"not_2": 1}))
    assert choose_exclusion({"w1": 1}, [one, two]).tokens == ("not_2",)
    assert choose_exclusion({"w1": 2}, [one, two]).open == ("w2",)


def test_other_custom_resources_choose_nobody() -> None:
    assert [name for name in ("gpu", "not_1", "fpga") if is_token(name)] == ["not_1"]


def test_the_plan_says_who_chooses_the_hosts() -> None:
    flow = drawn("a", a={"pinned": ("w2",), "memory_mb": 100})
    with_tokens = Cluster(manager="standalone", workers=tuple(slotted(4, slots=6)))
    assert "  hosts    exactly these: 3 workers kept out by 3 tokens\n" in explain_plan(plan(flow, with_tokens))
    without = plan(flow, standalone(4, 4, 4, 4)).groups[0].hosts
    assert (
        without == "the Master chooses, by count and shape of the containers alone: 3 more workers cannot be kept out"
    )
    other = {manager: replace(with_tokens, manager=manager) for manager in ("yarn", "kubernetes")}
    assert plan(flow, other["yarn"]).groups[0].hosts == "exactly these: 3 nodes excluded from the application"
    assert plan(flow, other["kubernetes"]).groups[0].hosts == "exactly these: node affinity leaves out 3 nodes"


def test_a_plan_for_all_workers_excludes_none() -> None:
    flow = drawn("a", a={"parallelism": 8, "memory_mb": 100})
    cluster = Cluster(manager="standalone", workers=tuple(slotted(2, slots=2)))
    assert plan(flow, cluster).groups[0].hosts == "all workers there are"


def deal_one_by_one(executors: int, room: dict[str, int], order: list[str]) -> dict[str, int]:
    """As Spark's Master does with workers in this order: round after round, one to each that has room."""
    dealt = dict.fromkeys(room, 0)
    while executors:
        for worker in order:
            if executors and dealt[worker] < room[worker]:
                dealt[worker], executors = dealt[worker] + 1, executors - 1
    return dealt


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_what_is_dealt_is_told_where_no_order_of_workers_changes_it(room: list[int], data: st.DataObject) -> None:
    there = {f"w{at}": most for at, most in enumerate(room)}
    executors = data.draw(st.integers(len(room), sum(room)))
    ways = [deal_one_by_one(executors, there, list(order)) for order in permutations(there)]
    told = deal_in_turn(executors, there)
    assert all(way == told for way in ways) if told else any(way != ways[0] for way in ways)


def test_the_plan_says_where_the_master_deals_other_numbers() -> None:
    """Three executors planned on w1, one on each of the others: the Master gives two of four workers two each."""
    with_tokens = Cluster(manager="standalone", workers=tuple(slotted(4, slots=6, cores=8)))
    group = place(GROWN, with_tokens, BEFORE).groups[0]
    assert count_containers(group) == {"w1": 3, "w2": 1, "w3": 1, "w4": 1}
    dealt = "the Master deals 6 executors out in turn, so each may have another number of them than planned"
    assert group.hosts == f"all workers there are; {dealt}"
    # Nobody else has room for a second one: there is no choice.
    small = tuple(replace(one, cores=3) if one.id != "w1" else one for one in with_tokens.workers)
    group = place(GROWN, replace(with_tokens, workers=small), BEFORE).groups[0]
    assert (count_containers(group), group.hosts) == ({"w1": 3, "w2": 1, "w3": 1, "w4": 1}, "all workers there are")
