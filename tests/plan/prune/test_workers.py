"""Workers, instances and whole plans: who stays, who goes, and why."""

from __future__ import annotations

import random
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.launch.managers.parallelism import make_session_settings
from airflow_dagsched.model.cluster import Cluster, Free
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Block, Channel, Dataflow, Partition, Source
from airflow_dagsched.model.graph import build_graph
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.plan_types import Container, Group, Plan, Pruned
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.pruning import PruningInput, count_remaining, prune_groups, trim_instances
from airflow_dagsched.plan.pruning.owners import Held, assign_readers, cover_blocks
from airflow_dagsched.plan.pruning.tasks import scan_tasks
from tests.plan.drawn import dataflows, drawn, standalone

MIB = 2**20
IDLE: dict[str, Any] = {"works_without_input": False}


def stored(*hosts: str, size: int = 10 * MIB, where: str | None = "day = 1", **fields: Any) -> dict[str, Any]:
    """Fields of a step that reads day 1, held by ``hosts``, of the days 1 and 2; h9 holds day 2."""
    days = ((1, hosts), (2, ("h9",)))
    partitions = (
        Partition(key={"day": day}, bytes=size, blocks=(Block(bytes=size, hosts=held),)) for day, held in days
    )
    return {"sources": (Source(path="/t", where=where, partitions=tuple(partitions)),), **fields}


def pruned(flow: Dataflow, cluster: Cluster, asked: PruningInput = PruningInput()) -> Group:  # noqa: B008
    """The only group of the flow."""
    (group,) = prune_groups(plan(flow, cluster), build_graph(flow), cluster, asked).groups
    return group


def gone(group: Group, what: str) -> list[str]:
    return [one.id for one in group.pruned if one.what == what]


def why(group: Group, what: str) -> set[str]:
    return {one.reason for one in group.unpruned if one.what == what}


def test_owners_of_the_day_stay() -> None:
    """a reads day 1 of /t, on w2 ══> b     w1, w3 and w4 hold nothing of it; the shuffle needs nobody"""
    group = pruned(drawn("a == b", a=stored("h2")), standalone(4, 4, 4, 4))
    assert group.partitions == {"a": ("day=1",)}
    assert group.pruned == (
        Pruned(what="partition", id="a/day=2", reason="no match for day = 1"),
        Pruned(what="worker", id="w1", reason="all that the group needs is on w2"),
        Pruned(what="worker", id="w3", reason="all that the group needs is on w2"),
        Pruned(what="worker", id="w4", reason="all that the group needs is on w2"),
    )


def test_pinned_workers_stay() -> None:
    group = pruned(drawn("a == b", a=stored("h2"), b={"pinned": ("w3",)}), standalone(4, 4, 4, 4))
    assert gone(group, "worker") == ["w1", "w4"]


@pytest.mark.parametrize("routing", ["forward", "shuffle", "broadcast", "single"])
def test_no_channel_adds_a_worker(routing: str) -> None:
    flow = drawn("a; b", a=stored("h2"))
    flow = replace(flow, channels=(Channel(src="a", dst="b", routing=routing),))  # type: ignore[arg-type]
    assert gone(pruned(flow, standalone(4, 4, 4)), "worker") == ["w1", "w3"]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (stored(), "who holds the data is not known: any worker is as near"),
        (stored("h7"), "a host of the data is gone or has no free core"),
        (stored("h2", cores=4), "no worker that holds the data has room for step 'a'"),
        ({"sources": (Source(path="/t"),)}, "/t, which step 'a' reads: its partitions are not listed"),
        ({}, "step 'a' makes its rows itself: any worker may"),
        (stored("h2", where="day = 3"), "no partition is needed: any worker will do"),
    ],
)
def test_reasons_for_all_workers_to_stay(step: dict[str, Any], reason: str) -> None:
    group = pruned(drawn("a == b", a=step), standalone(8, 2, 8))
    assert gone(group, "worker") == []
    assert why(group, "worker") == {reason}


def test_a_full_host_widens_the_set() -> None:
    cluster = standalone(4, 4)
    full = replace(cluster, workers=(cluster.workers[0], replace(cluster.workers[1], free=Free(cores=0))))
    flow = drawn("a", a=stored("h2"))
    (group,) = prune_groups(plan(flow, cluster), build_graph(flow), full, PruningInput()).groups
    assert why(group, "worker") == {"a host of the data is gone or has no free core"}


def test_a_replica_on_a_live_host_is_enough() -> None:
    assert gone(pruned(drawn("a", a=stored("h7", "h3")), standalone(4, 4, 4)), "worker") == ["w1", "w2"]


def test_what_an_earlier_group_stored() -> None:
    """a ──> (t) ──> b, and a ══> b: two groups. Where a's rows are is known from its manifest, or not"""
    flow = drawn("a == b; a -- t; t -- b", tasks="t", a=stored("h2"))
    cluster, graph = standalone(4, 4, 4), build_graph(flow)
    first, second = prune_groups(plan(flow, cluster), graph, cluster, PruningInput()).groups
    assert gone(first, "worker") == ["w1", "w3"]
    assert why(second, "worker") == {"who holds dataset 'a/' is not known"}
    told = PruningInput(
        stored={"a/": Source(path="/w/a", partitions=(Partition(blocks=(Block(bytes=1, hosts=("h3",)),)),))}
    )
    assert gone(prune_groups(plan(flow, cluster), graph, cluster, told).groups[1], "worker") == ["w1", "w2"]


@pytest.mark.parametrize(
    ("mode", "where", "free", "routing", "reason"),
    [
        ("auto", "day = 1", False, "broadcast", ""),
        ("declared", "day = 1", False, "broadcast", ""),
        ("declared", None, False, "shuffle", "nothing says which partitions of /t step 'a' needs"),
        ("analysed", None, True, "shuffle", ""),
        ("analysed", "day = 1", False, "shuffle", "step 'a' works without input, on any worker"),
        ("analysed", "day = 1", True, "broadcast", "the rows from 'a' to 'b' are broadcast to all workers"),
    ],
)
def test_modes(
    mode: Literal["analysed", "declared", "auto"], where: str, free: bool, routing: str, reason: str
) -> None:
    """``free``: neither step works without input."""
    more = IDLE if free else {}
    flow = drawn("a; b", a=stored("h2", where=where, **more), b=more)
    flow = replace(flow, channels=(Channel(src="a", dst="b", routing=routing),))  # type: ignore[arg-type]
    cluster = replace(standalone(4, 4, 4), workers=(*standalone(4, 4, 4).workers, *_holder_of_day_2()))
    group = pruned(flow, cluster, PruningInput(mode=mode))
    assert why(group, "worker") == ({reason} if reason else set())
    assert bool(gone(group, "worker")) == (not reason)


def _holder_of_day_2() -> tuple[Any, ...]:
    return (replace(standalone(4).workers[0], id="w9", host="h9"),)


def test_switched_off() -> None:
    group = pruned(drawn("a", a=stored("h2")), standalone(4, 4), PruningInput(mode=False))
    assert (group.pruned, group.partitions, why(group, "step")) == ((), {}, {"pruning is switched off"})


def test_streaming_is_never_pruned() -> None:
    group = pruned(drawn("a == b", a=stored("h2"), b={"mode": "streaming"}), standalone(4, 4))
    assert (group.pruned, group.partitions, why(group, "step")) == ((), {}, {"streaming is never pruned"})


def test_a_group_with_nothing_left_has_no_worker_to_choose() -> None:
    group = pruned(drawn("a == b", a=stored("h2", where="day = 3", **IDLE), b=IDLE), standalone(4, 4))
    assert (gone(group, "step"), gone(group, "worker")) == (["a", "b"], [])
    counts, _ = count_remaining(group, build_graph(drawn("a == b")), standalone(4, 4).workers)
    assert counts == {}


def test_a_count_runs_although_nothing_is_read() -> None:
    group = pruned(drawn("a == b", a=stored("h2", where="day = 3", **IDLE)), standalone(4, 4))
    assert gone(group, "step") == ["a"]


def test_two_sources_of_a_step_are_told_apart() -> None:
    one, other = stored("h2")["sources"][0], replace(stored("h2")["sources"][0], path="/u")
    group = pruned(drawn("a", a={"sources": (one, other)}), standalone(4, 4))
    assert group.partitions == {"a": ("/t/day=1", "/u/day=1")}
    assert gone(group, "partition") == ["a//t/day=2", "a//u/day=2"]


def test_a_source_read_twice_is_needed_for_either() -> None:
    one = stored("h2")["sources"][0]
    both = pruned(drawn("a", a={"sources": (one, replace(one, where="day = 2"))}), standalone(4, 4))
    assert both.partitions == {"a": ("day=1", "day=2")}
    whole = pruned(drawn("a", a={"sources": (replace(one, where=None), one)}), standalone(4, 4))
    assert (whole.partitions, gone(whole, "partition")) == ({}, [])


def test_instances_without_a_split() -> None:
    """10 MiB are three splits of 4 MiB, the least: of eight instances five read nothing, nor do those behind them."""
    flow = drawn(
        "a; b; c", a=stored("h2", size=10 * MIB, parallelism=8), b={"parallelism": 8, **IDLE}, c={"parallelism": 8}
    )
    channels = (Channel(src="a", dst="b", routing="forward"), Channel(src="b", dst="c", routing="forward"))
    group = pruned(replace(flow, channels=channels), standalone(8, 8))
    counts, workers = count_remaining(group, build_graph(flow), standalone(8, 8).workers)
    assert counts == {"a": 3, "b": 3, "c": 8}
    assert [worker.id for worker in workers] == ["w2"]


@pytest.mark.parametrize(
    ("sizes", "asked", "tasks"),
    [
        ([1], 1, 1),
        ([128], 1, 1),
        ([129], 1, 2),
        ([300], 1, 3),
        ([1] * 26, 1, 1),
        ([1] * 27, 1, 2),
        ([100, 100, 20, 20], 1, 3),
        ([0, 5], 1, None),
        ([], 3, 0),
        ([300], 8, 8),
        ([10], 8, 3),
        ([1], 8, 1),
        ([100, 100], 3, 3),
    ],
)
def test_tasks_of_a_scan(sizes: list[int], asked: int, tasks: int | None) -> None:
    """Before the 27th file of 1 MiB, 4 MiB each to open, stand 26 x 5 = 130 MiB: a second task.

    Asked for 8 tasks, Spark cuts 300 MiB at 38 and makes 8, cuts 10 MiB at 4, the least, and makes 3.
    """
    assert scan_tasks([Partition(bytes=size * MIB) for size in sizes], asked) == tasks


def test_a_scan_that_its_author_cuts_keeps_its_instances() -> None:
    """Then the launch says nothing of splits: how many there are is not known."""
    author = {"application": {"spark.sql.files.maxPartitionBytes": "1g"}}
    flow = drawn("a", a=stored("h2", size=10 * MIB, parallelism=8, **author))
    assert gone(pruned(flow, standalone(8, 8)), "instance") == []


def test_instances_are_the_tasks_that_a_launch_asks_for() -> None:
    """The launch tells Spark 10: of 300 MB it makes as many, so no instance is without rows."""
    flow = drawn("a", a=stored("h2", size=300_000_000, parallelism=10))
    assert make_session_settings(10, ())["spark.sql.files.minPartitionNum"] == "10"
    assert gone(pruned(flow, standalone(8, 8)), "instance") == []


def placed(flow: Dataflow, *boxes: tuple[str, str]) -> Plan:
    """One group; each box a worker and ``"a/0 b/0"``."""
    need = {"cores": 1, "memory_mb": 1, "disk_mb": 0}
    containers = tuple(
        Container(
            id=f"launch/{at}",
            worker=worker,
            instances=tuple((name.split("/")[0], int(name.split("/")[1])) for name in held.split()),
            required=need,  # type: ignore[arg-type]
            **need,  # type: ignore[arg-type]
        )
        for at, (worker, held) in enumerate(boxes)
    )
    group = Group(id="launch", steps=tuple(step.id for step in flow.steps), reason="", containers=containers)
    return Plan(dataflow="drawn", digest="", groups=(group,))


def test_a_worker_leaves_when_nothing_on_it_works_without_input() -> None:
    """w1 [a/0 b/0]   w2 [a/1 b/1]     day 1 is on w1; b gets its rows from the a beside it"""
    flow = drawn("a; b", a={**stored("h1"), **IDLE, "parallelism": 2}, b={**IDLE, "parallelism": 2})
    flow = replace(flow, channels=(Channel(src="a", dst="b", routing="forward"),))
    cluster = standalone(4, 4)
    made = placed(flow, ("w1", "a/0 b/0"), ("w2", "a/1 b/1"))
    (group,) = trim_instances(made, build_graph(flow), cluster, PruningInput(mode="analysed")).groups
    assert [box.worker for box in group.containers] == ["w1"]
    assert (gone(group, "instance"), gone(group, "worker")) == (["a/1", "b/1"], ["w2"])
    assert trim_instances(made, build_graph(flow), cluster, PruningInput(mode="declared")) == made


@pytest.mark.parametrize(
    ("b", "routing", "left"),
    [
        ({}, "forward", [("b", 1)]),  # b works without input: only the scan goes
        (IDLE, "shuffle", [("b", 1)]),  # rows of w1 come to all
        (IDLE, "broadcast", [("b", 1)]),
    ],
)
def test_what_stays_on_a_worker(b: dict[str, Any], routing: str, left: list[tuple[str, int]]) -> None:
    flow = drawn("a; b", a={**stored("h1"), **IDLE, "parallelism": 2}, b={**b, "parallelism": 2})
    flow = replace(flow, channels=(Channel(src="a", dst="b", routing=routing),))  # type: ignore[arg-type]
    made = placed(flow, ("w1", "a/0 b/0"), ("w2", "a/1 b/1"))
    (group,) = trim_instances(made, build_graph(flow), standalone(4, 4), PruningInput()).groups
    assert [list(box.instances) for box in group.containers if box.worker == "w2"] == [left]


def test_whoever_holds_part_of_a_partition_reads_of_it() -> None:
    """One day, a block on w1 and one on w2: of three instances only that on w3 has nothing near it."""
    blocks = tuple(Block(bytes=2**20, hosts=(host,)) for host in ("h1", "h2"))
    source = Source(path="t", partitions=(Partition(key={"day": 1}, blocks=blocks),))
    flow = drawn("a", a={"sources": (source,), **IDLE, "parallelism": 3})
    made = placed(flow, ("w1", "a/0"), ("w2", "a/1"), ("w3", "a/2"))
    (group,) = trim_instances(made, build_graph(flow), standalone(4, 4, 4), PruningInput()).groups
    assert [box.worker for box in group.containers] == ["w1", "w2"]


def test_whoever_is_planned_far_from_its_block_reads_it_there() -> None:
    """Eight days on w1, which has one core: all eight instances at once, 8 + 60 s, not one after another on w1."""
    days = tuple(Partition(key={"day": at}, blocks=(Block(bytes=2**27, hosts=("h1",)),)) for at in range(8))
    scan = {"sources": (Source(path="t", partitions=days),), **IDLE, "parallelism": 8, "runtime_s": 60}
    policy = Policy("data_locality", PlacementSettings(), State())
    made = plan(drawn("a", a=scan), standalone(1, 4, 4), run=Run(PruningInput(), policy=policy))
    assert made.makespan_s == 68.0
    assert sum(len(box.instances) for box in made.groups[0].containers) == 8


BLOCKS = st.lists(st.builds(Held, st.integers(0, 9), st.frozensets(st.sampled_from("abcdef"), max_size=3)), max_size=20)


@given(BLOCKS, st.sets(st.sampled_from("abcdef"), max_size=2))
def test_a_cover_covers_and_holds_nobody_for_nothing(held: list[Held], pinned: set[str]) -> None:
    chosen = cover_blocks(held, pinned)
    assert pinned <= chosen
    assert all(not one.workers or not chosen.isdisjoint(one.workers) for one in held)
    assert chosen <= pinned.union(*(one.workers for one in held))
    assert cover_blocks(held[::-1], sorted(pinned)) == chosen


@given(
    st.dictionaries(st.text("xyz", min_size=1), st.frozensets(st.sampled_from("abcz")), max_size=9),
    st.sets(st.sampled_from("abc")),
)
def test_every_partition_is_read_once_by_a_holder_if_there_is_one(
    held: dict[str, frozenset[str]], pinned: set[str]
) -> None:
    """z is no worker any more."""
    found = assign_readers(held, pinned, "abc")
    assert sorted(name for names in found.values() for name in names) == sorted(held)
    for worker, names in found.items():
        assert all(worker in held[name] or not held[name] & set("abc") for name in names)
    assert pinned <= found.keys()


@settings(max_examples=60, deadline=None)
@given(dataflows(most=30), st.integers(0, 2**32), st.sampled_from(["auto", "analysed", "declared"]))
def test_whatever_is_pruned_is_sound_and_does_not_depend_on_order(flow: Dataflow, seed: int, mode: Any) -> None:
    """Needed partitions keep an owner among the workers, running steps an instance, pins their workers."""
    rng = random.Random(seed)
    cluster = standalone(*([64] * 6))
    steps = [replace(step, **_source(rng), works_without_input=rng.random() < 0.5) for step in flow.steps]
    flow = replace(flow, steps=tuple(steps))
    made, asked = plan(flow, cluster), PruningInput(mode=mode)
    found = prune_groups(made, build_graph(flow), cluster, asked)
    for group in found.groups:
        counts, workers = count_remaining(group, build_graph(flow), cluster.workers)
        hosts = {worker.host for worker in workers}
        assert workers
        assert all(counts.values())
        for step in (step for step in flow.steps if step.id in counts):
            assert not step.pinned or {worker.id for worker in workers} >= set(step.pinned)
            for partition in (one for source in step.sources for one in source.partitions if one.key["day"] == 1):
                assert all(not hosts.isdisjoint(block.hosts) for block in partition.blocks if block.hosts)
    rng.shuffle(steps)
    turned = tuple(replace(step, sources=_turned(step.sources)) for step in steps)
    other = replace(flow, steps=turned, channels=flow.channels[::-1])
    assert encode_value(prune_groups(made, build_graph(other), cluster, asked)) == encode_value(found)


def _source(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {}
    partitions = tuple(
        Partition(
            key={"day": rng.choice([1, 2]), "part": at},
            blocks=(
                Block(bytes=rng.randint(0, 9), hosts=tuple(rng.sample(["h1", "h2", "h3", "h4"], rng.randint(1, 3)))),
            ),
        )
        for at in range(rng.randint(1, 4))
    )
    return {"sources": (Source(path="/t", where=rng.choice([None, "day = 1"]), partitions=partitions),)}


def _turned(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    return tuple(replace(source, partitions=source.partitions[::-1]) for source in sources)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Pruned(what="step", id="b", reason="idle"), "is left out, but works without input"),
        (Pruned(what="step", id="x", reason="idle"), "is left out of 'launch', which has no such step"),
        (Pruned(what="worker", id="w1", reason="idle"), "is on 'w1', which the group leaves out"),
        (Pruned(what="partition", id="a/day=1", reason="idle"), "reads partition day=1, which it leaves out"),
    ],
)
def test_the_checker_sees_what_must_not_be_left_out(entry: Pruned, message: str) -> None:
    flow, cluster = drawn("a == b", a=IDLE), standalone(4)
    (group,) = (made := plan(flow, cluster)).groups
    wrong = replace(group, partitions={"a": ("day=1",)}, pruned=(entry,))
    assert message in {one.message for one in check_strictly(replace(made, groups=(wrong,)), flow, cluster)}


def test_the_checker_lets_nothing_of_a_stream_go() -> None:
    flow, cluster = drawn("a", a={"mode": "streaming"}), standalone(4, 4)
    (group,) = (made := plan(flow, cluster)).groups
    wrong = replace(group, pruned=(Pruned(what="worker", id="w2", reason="idle"),))
    assert [one.rule for one in check_strictly(replace(made, groups=(wrong,)), flow, cluster)] == ["pruned"]
