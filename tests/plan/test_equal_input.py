"""Guarantee 5: equal inputs, in any order of anything, give the byte-identical plan, for every policy and pruning.

scan, two instances     day=0 h0   day=1 h1   day=2 h0   day=3 h1     the same as     h1 h1 h0 h0, of days 1 3 2 0
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Block, Dataflow, Partition, Source, Step
from airflow_dagsched.model.partition_order import sort_partitions
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policy import POLICIES
from airflow_dagsched.placement.settings import SPARK
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.pruning.pruning_input import PruningInput
from airflow_dagsched.plan.settings import Mode
from tests.plan.drawn import clusters, dataflows, drawn, standalone
from tests.plan.order import shuffle_deeply

MODES: tuple[Mode, ...] = ("auto", "declared", "analysed", False)
SLOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


def add_sources(rng: random.Random, flow: Dataflow) -> Dataflow:
    """Up to two tables of up to six partitions for some steps, and some streaming steps."""
    return replace(flow, steps=tuple(_read_tables(rng, step) for step in flow.steps))


def _read_tables(rng: random.Random, step: Step) -> Step:
    if step.repeat or rng.random() < 0.5:
        return step
    tables = [_draw_table(rng) for _ in range(rng.randint(1, 2))]
    return replace(step, sources=tuple(tables), works_without_input=rng.random() < 0.5)


def _draw_table(rng: random.Random) -> Source:
    parts = tuple(_draw_partition(rng) for _ in range(rng.randint(0, 6)))
    return Source(path=rng.choice(["t", "u"]), where=rng.choice([None, "day = 2", "day >= 9"]), partitions=parts)


def _draw_partition(rng: random.Random) -> Partition:
    blocks = tuple(
        Block(bytes=rng.choice([2**20, 2**27]), hosts=tuple(rng.sample(["h1", "h2", "h3", "h9"], rng.randint(0, 2))))
        for _ in range(rng.randint(0, 3))
    )
    return Partition(key={"day": rng.randint(1, 12)}, bytes=rng.choice([0, 2**20]), blocks=blocks)


def plan_bytes(flow: Dataflow, cluster: Cluster, name: str, mode: Mode) -> bytes:
    """The plan, or why there is none."""
    run = Run(pruning_input=PruningInput(mode=mode), policy=Policy(name, SPARK, State()) if name else None)
    try:
        return encode_value(plan(flow, cluster, run=run))
    except DoesNotFit as refusal:
        return str(refusal).encode()


@pytest.mark.parametrize("name", ["", *POLICIES])
@settings(max_examples=12, **SLOW)  # type: ignore[arg-type]
@given(dataflows(most=12), clusters(), st.sampled_from(MODES), st.integers(0, 2**32))
def test_any_order_gives_the_same_bytes(name: str, flow: Dataflow, cluster: Cluster, mode: Mode, seed: int) -> None:
    rng = random.Random(seed)
    flow = add_sources(rng, flow)
    if rng.random() < 0.3:
        flow = replace(flow, steps=tuple(replace(step, mode="streaming") for step in flow.steps))
    made = plan_bytes(flow, cluster, name, mode)
    assert plan_bytes(shuffle_deeply(rng, flow), shuffle_deeply(rng, cluster), name, mode) == made


@pytest.mark.parametrize("name", ["data_locality", "auto"])
def test_a_listing_has_no_order(name: str) -> None:
    """Four partitions, and two workers of one core: scan/0 is on the same in both."""
    days = [Partition(key={"day": day}, bytes=10**8, blocks=_on(f"h{day % 2 + 1}")) for day in range(4)]
    cluster = Cluster(
        manager="standalone",
        workers=tuple(Worker(id=f"w{at}", host=f"h{at}", cores=1, memory_mb=8000) for at in (1, 2)),
    )
    plans = {
        plan_bytes(
            drawn("scan", scan={"parallelism": 2, "sources": (Source(path="t", partitions=tuple(listed)),)}),
            cluster,
            name,
            "auto",
        )
        for listed in (days, [days[1], days[3], days[2], days[0]])
    }
    assert len(plans) == 1


def test_days_count_as_numbers_do() -> None:
    keys = [{"day": 10}, {"day": 2}, {"day": "b"}, {"day": "a10"}, {"day": "a9"}, {}, {"day": None}]
    ordered = sort_partitions(Partition(key=key) for key in keys)  # type: ignore[arg-type]
    days = [part.key.get("day") for part in ordered]
    assert days.index(2) < days.index(10)
    assert days.index("a9") < days.index("a10") < days.index("b")


def _on(host: str) -> tuple[Block, ...]:
    return (Block(bytes=10**8, hosts=(host,)),)


def test_two_tables_of_one_path_are_one() -> None:
    """The same partition declared twice, with other bytes: whichever comes first."""
    tables = [Source(path="t", partitions=(Partition(key={"day": 1}, bytes=size),)) for size in (2**20, 2**30)]
    plans = {
        plan_bytes(drawn("scan", scan={"parallelism": 9, "sources": tuple(order)}), standalone(9), "auto", "auto")
        for order in (tables, tables[::-1])
    }
    assert len(plans) == 1
