"""What the failure of a worker costs, against the least it could: a flow that shares no code with the strategy.

Least: each lost instance goes on where one of its standbys is, and what is then uneven is made level by further
hand-overs. With one standby there is no choice at a failure; there was when the standbys were planted.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.sticky.bipartite_matching import match_bipartite
from airflow_dagsched.placement.high_availability.sticky.fair_shares import find_fair_line, list_fair_shares
from airflow_dagsched.placement.high_availability.values import Worker
from tests.placement.high_availability.simulated import Cluster, list_hand_overs, stateful, workers


def least_hand_overs(before: Assignment, left: list[Worker]) -> int:
    """Lost instance -> its standbys -> any other worker for 1 -> as many as a level load lets each have."""
    capacity = {worker.id: worker.capacity for worker in left}
    lost = [instance for instance, worker in before.active.items() if worker not in capacity]
    have = Counter(before.active.values())
    graph = nx.DiGraph()
    graph.add_node("from", demand=-len(before.active))
    graph.add_node("to", demand=len(before.active))
    stands = sorted(Fraction(at, one) for one in capacity.values() for at in range(1, len(before.active) + 1))
    highest = stands[len(before.active) - 1]
    for worker, one in capacity.items():
        most = int(highest * one)
        must = sum(Fraction(at, one) < highest for at in range(1, most + 1))
        graph.add_edge("from", worker, capacity=have[worker], weight=0)
        graph.add_edge(worker, ("must", worker), capacity=must, weight=-10_000)
        graph.add_edge(("must", worker), "to", weight=0)
        graph.add_edge(worker, ("may", worker), capacity=most - must, weight=0)
        graph.add_edge(("may", worker), "to", weight=0)
        graph.add_edge(worker, "hub", weight=1)
        graph.add_edge("hub", worker, weight=0)
    for instance in lost:
        graph.add_edge("from", ("lost", instance), capacity=1, weight=0)
        for worker in before.standby.get(instance) or capacity:
            graph.add_edge(("lost", instance), worker, capacity=1, weight=0)
    flow = nx.min_cost_flow(graph)
    further: int = sum(flow[worker]["hub"] for worker in capacity)
    return len(lost) + further


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_failure_costs_more_than_the_least_and_nothing_moves_twice(data: st.DataObject) -> None:
    """After any history of workers that came and went, equal or not."""
    sizes = st.sampled_from(data.draw(st.sampled_from([[1], [1, 2, 4]])))
    hosts = [Worker(f"w{at}", data.draw(sizes)) for at in range(data.draw(st.integers(2, 12)))]
    said = Settings(num_standbys=data.draw(st.integers(0, 2)), max_warmups=data.draw(st.integers(1, 8)))
    cluster = Cluster(stateful(data.draw(st.integers(1, 60))), hosts, said)
    cluster.settle()
    for added in range(20, 20 + data.draw(st.integers(1, 5))):
        before, gone = cluster.last, data.draw(st.sampled_from(["nobody", *(host.id for host in cluster.workers)]))
        assert before is not None
        if gone == "nobody" or len(cluster.workers) == 1:
            cluster.join(Worker(f"w{added}", data.draw(sizes)))
            cluster.settle()
            assert cluster.last is not None
            least = Counter(cluster.last.active.values())[f"w{added}"]
        else:
            cluster.leave(gone)
            cluster.settle()
            least = least_hand_overs(before, list(cluster.workers))
        counts = list_hand_overs(before, cluster.history)
        assert max(counts.values(), default=1) == 1
        assert sum(counts.values()) <= least


def test_where_all_copies_are_level_not_every_failure_can_be_cheap() -> None:
    """16 instances on 9 workers: 7 have two, 2 have one. Without any of them 8 are left for two each, so only the two
    with one can inherit, or one too many would be handed over for every instance that goes elsewhere.
    With one such passable for each of 9 failures, at least 16 - 9 = 7 standbys would be on the two, which then hold
    7 + 2 = 9 copies: one of them 5 or more. Level would be 32 / 9, so 4 at most. What does hold: the least, as above.
    """
    cluster = Cluster(stateful(16), workers(9), Settings(num_standbys=1))
    cluster.settle()
    last = cluster.last
    assert last is not None
    copies = Counter([*last.active.values(), *(held for (held,) in last.standby.values())])
    assert sorted(copies.values()) == [3] * 4 + [4] * 5
    dearest = 0
    for host in cluster.workers:
        left = [one for one in cluster.workers if one is not host]
        dearest = max(dearest, least_hand_overs(last, left) - Counter(last.active.values())[host.id])
    assert dearest == 2


def test_ten_on_workers_of_one_and_two() -> None:
    """Ten dealt: 1, 2 and 3 of the first stand at 1, 2, 3; six of the second at 1/2 ... 3; one of them at 7/2."""
    assert find_fair_line(10, (1, 2)) == Fraction(7, 2)
    assert list_fair_shares(find_fair_line(10, (1, 2)), (1, 2)).most == [3, 7]
    assert list_fair_shares(find_fair_line(9, (1, 2)), (1, 2)).least == [2, 5], "either may go without the one at 3"


@given(st.integers(0, 200), st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_dealt_one_by_one(count: int, capacity: list[int]) -> None:
    """The same as a deal in which each time the one goes who has relatively least with it."""
    have = [0] * len(capacity)
    for _ in range(count):
        have[min(range(len(have)), key=lambda at: Fraction(have[at] + 1, capacity[at]))] += 1
    found = list_fair_shares(find_fair_line(count, capacity), capacity)
    assert all(least <= had <= most for least, had, most in zip(found.least, have, found.most, strict=True))
    assert sum(found.least) <= count <= sum(found.most)


@given(st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 6), max_size=4).map(sorted)), st.data())
def test_as_many_as_possible_find_a_place(choices: dict[int, list[int]], data: st.DataObject) -> None:
    room = {place: data.draw(st.integers(0, 3)) for place in range(7)}
    found: dict[int, int] = {}
    match_bipartite(choices, room, found)
    assert all(place in choices[who] for who, place in found.items())
    assert all(count <= room[place] for place, count in Counter(found.values()).items())
    graph = nx.DiGraph()
    graph.add_nodes_from(("from", "to"))
    graph.add_edges_from((("from", ("who", who)) for who in choices), capacity=1)
    graph.add_edges_from(((("who", who), place) for who in choices for place in choices[who]), capacity=1)
    for place, count in room.items():
        graph.add_edge(place, "to", capacity=count)
    assert len(found) == nx.maximum_flow_value(graph, "from", "to")
