"""Data locality over all shapes of container, against a minimum-cost flow; holders that are small, full or far.

                 8 blocks: 4 on h1, 4 on h2
w0  8 cores                        a container of 8 cores has room here alone, one of 4 here and on w1
w1  4 cores  holds h1  [aaa]
w2  3 cores  holds h2  [aaa]       and one of 3 on both holders
"""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Block, Dataflow, Partition, Source, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policies.data_locality import place_near_data
from airflow_dagsched.placement.policies.least_assignment import assign_at_least_cost
from airflow_dagsched.placement.request import make_request
from airflow_dagsched.placement.settings import SPARK
from airflow_dagsched.placement.values import make_offer
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.pruning.pruning_input import PruningInput
from airflow_dagsched.plan.settings import Mode

GIB = 2**30
PRUNED: tuple[Mode, ...] = ("auto", False)
Layout = tuple[tuple[int, tuple[int, ...]], ...]
"""Of each instance: the bytes of its one block, and the workers that hold it."""


def make_worker(at: int, cores: int, rack: str | None = None) -> Worker:
    return Worker(id=f"w{at}", host=f"h{at}", cores=cores, memory_mb=64_000, rack=rack)


def make_scan(layout: Layout, mode: str) -> Dataflow:
    """A step with an instance for each block."""
    parts = tuple(
        Partition(key={"at": at}, bytes=size, blocks=(Block(bytes=size, hosts=tuple(f"h{one}" for one in holders)),))
        for at, (size, holders) in enumerate(layout)
    )
    source = Source(path="t", partitions=parts)
    step = Step(id="scan", parallelism=len(layout), memory_mb=100, runtime_s=60, sources=(source,), mode=mode)  # type: ignore[arg-type]
    return Dataflow(name="f", steps=(step,))


def place(flow: Dataflow, cluster: Cluster, mode: Mode = False) -> Plan:
    run = Run(pruning_input=PruningInput(mode=mode), policy=Policy("data_locality", SPARK, State()))
    made = plan(flow, cluster, run=run)
    assert check_strictly(made, flow, cluster) == ()
    return made


def sum_remote_bytes(made: Plan, layout: Layout) -> int:
    on = {index: box.worker for box in made.groups[0].containers for _, index in box.instances}
    return sum(size for at, (size, holders) in enumerate(layout) if on[at] not in {f"w{one}" for one in holders})


def find_least_remote_bytes(layout: Layout, cores: list[int]) -> int:
    """Instance -> worker at its bytes if they are not there; a worker has room for as many as it has cores."""
    graph = nx.DiGraph()
    for at, (size, holders) in enumerate(layout):
        graph.add_edge("source", f"i{at}", capacity=1, weight=0)
        for one in range(len(cores)):
            graph.add_edge(f"i{at}", f"w{one}", capacity=1, weight=0 if one in holders else size)
    for one, most in enumerate(cores):
        graph.add_edge(f"w{one}", "sink", capacity=most, weight=0)
    flow = nx.max_flow_min_cost(graph, "source", "sink")
    return int(nx.cost_of_flow(graph, flow))


@st.composite
def skewed_layouts(draw: st.DrawFn) -> tuple[Layout, list[int]]:
    """Most blocks on few of the workers, of unlike sizes; all instances have room at once."""
    cores = draw(st.lists(st.integers(1, 9), min_size=2, max_size=7))
    count = draw(st.integers(1, min(20, sum(cores))))
    hot = draw(st.integers(0, len(cores) - 1))
    layout = []
    for _ in range(count):
        holders = draw(st.sets(st.integers(0, len(cores) - 1), min_size=1, max_size=2))
        holders = {hot} if draw(st.booleans()) else holders
        layout.append((draw(st.sampled_from([GIB // 8, GIB, 5 * GIB])), tuple(sorted(holders))))
    return tuple(layout), cores


@pytest.mark.parametrize("mode", ["batch", "streaming"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(skewed_layouts(), st.sampled_from(PRUNED))
def test_no_flow_reads_less_from_afar(mode: str, problem: tuple[Layout, list[int]], prune: Mode) -> None:
    """Also where only the fewest that hold the data would be needed."""
    layout, cores = problem
    workers = tuple(make_worker(at, most) for at, most in enumerate(cores))
    made = place(make_scan(layout, mode), Cluster(manager="standalone", workers=workers), prune)
    assert sum_remote_bytes(made, layout) <= 1.01 * find_least_remote_bytes(layout, cores)


HALVES: Layout = tuple((GIB, (1 + at % 2,)) for at in range(8))
"""Eight blocks, half of them on h1 and half on h2."""


def test_auto_says_what_it_compared() -> None:
    """First fit takes the largest worker, which holds nothing."""
    cluster = Cluster(manager="standalone", workers=(make_worker(0, 16), make_worker(1, 4), make_worker(2, 4)))
    run = Run(pruning_input=PruningInput(mode=False), policy=Policy("auto", SPARK, State()))
    made = plan(make_scan(HALVES, "batch"), cluster, run=run).groups[0]
    assert made.placement.endswith("; 0 of 8,192 MiB read from afar; first_fit 8,192 of 8,192 MiB read from afar")


@pytest.mark.parametrize("prune", PRUNED)
@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_both_holders_are_used(mode: str, prune: Mode) -> None:
    cluster = Cluster(manager="standalone", workers=(make_worker(0, 8), make_worker(1, 4), make_worker(2, 3)))
    made = place(make_scan(HALVES, mode), cluster, prune)
    assert {"w1", "w2"} <= {box.worker for box in made.groups[0].containers}
    assert sum_remote_bytes(made, HALVES) <= GIB


def test_a_holder_stays_where_the_fewest_are_full() -> None:
    """
    w0  1 core   a b         {w0, w1} hold all, and w0 has a core for a alone: b would be read from afar
    w1  3 cores      c c
    w2  1 core     b
    """
    cluster = Cluster(manager="standalone", workers=tuple(make_worker(at, most) for at, most in enumerate((1, 3, 1))))
    layout: Layout = ((GIB, (0,)), (GIB, (0, 2)), (GIB, (1,)), (GIB, (1,)))
    assert sum_remote_bytes(place(make_scan(layout, "batch"), cluster, "auto"), layout) == 0


def test_the_rack_of_a_full_host_is_known() -> None:
    """h1 holds all and has no core left: w2 in its rack is nearer than w0 and w9."""
    full = Worker(id="w1", host="h1", cores=4, memory_mb=100, rack="r1")
    others = make_worker(0, 4, "r2"), make_worker(2, 4, "r1"), make_worker(9, 4, "r3")
    cluster = Cluster(manager="standalone", workers=(full, *others))
    made = place(make_scan(((GIB, (1,)), (GIB, (1,))), "batch"), cluster)
    assert {box.worker for box in made.groups[0].containers} == {"w2"}


def test_racks_of_hosts_without_an_offer() -> None:
    flow = make_scan(((GIB, (1,)),), "batch")
    offers = [make_offer(make_worker(at, 4, rack)) for at, rack in ((2, "r2"), (3, "r1"))]
    request = make_request(flow, offers, SPARK, racks={"h1": "r1", "h2": "r2", "h3": "r1"})
    assert place_near_data(request) == [[1]]


def test_a_chain_of_moves_makes_room() -> None:
    """a reads w1 alone, b w1 or w2, c w2 or w3: all have one place, and come in the worst order."""
    costs = [[0.0, 0.0, 9.0], [9.0, 0.0, 0.0], [0.0, 9.0, 9.0]]
    assert assign_at_least_cost(costs, [1, 1, 1]) == [1, 2, 0]
