"""Block hosts by the names of the workers there, and what NameNodes of both kinds answer."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.launch.managers.hosts import add_stored_sources, locate_sources, match_hosts, rename_hosts
from airflow_dagsched.launch.managers.webhdfs import (
    build_request,
    parse_location,
    read_blocks,
    read_live_hosts,
    read_page,
    read_refusal,
)
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Block, Partition, Source
from airflow_dagsched.plan.pruning.conditions.condition import ALWAYS
from airflow_dagsched.plan.pruning.layout import parse_partition_name, partition_name
from airflow_dagsched.plan.pruning.sources import Selection
from tests.plan.drawn import drawn

RECORDED = Path(__file__).parent / "recorded"
NAMES = st.sampled_from(["w1", "w2", "W2", "w1.a.com", "w2.a.com", "w2.b.com", "w2.a.com.eu", "10.0.0.2", "10.0.0.3"])


def recorded(name: str) -> bytes:
    return (RECORDED / f"{name}.json").read_bytes()


@pytest.mark.parametrize(
    ("workers", "said", "meant"),
    [
        ("w1.a.com w2.a.com", "w2", "w2.a.com"),
        ("w1 w2", "w2.a.com", "w2"),
        ("w1 w2", "W2", "w2"),
        ("w2.a.com w2.b.com", "w2", "w2"),
        ("w2.a.com w2.b.com", "w2.b.com", "w2.b.com"),
        ("w2.a.com", "w2.b.com", "w2.b.com"),
        ("10.0.0.2 10.0.0.3", "10.0.0.3", "10.0.0.3"),
        ("10.0.0.2", "10", "10"),
        ("w1", "elsewhere", "elsewhere"),
    ],
    ids=lambda text: text.replace(" ", "+"),
)
def test_a_host_by_its_short_or_long_name(workers: str, said: str, meant: str) -> None:
    """Where it is not clear who is meant, nobody is."""
    assert match_hosts(workers.split())(said) == meant


@given(st.lists(NAMES, unique_by=str.lower), NAMES)
def test_a_name_means_a_worker_that_it_could_be_or_stays(workers: list[str], said: str) -> None:
    meant = match_hosts(workers)(said)
    assert meant == said or (meant in workers and meant.lower().split(".")[0] == said.lower().split(".")[0])
    assert said not in workers or meant == said


def test_what_is_read_is_held_by_the_workers_that_a_store_means() -> None:
    """And what is left out stays listed, so that nothing of the table is unaccounted for."""
    cluster = Cluster(manager="yarn", workers=(Worker(id="n", host="w1.a.com", cores=1, memory_mb=1),))
    partition = Partition(key={"day": "1"}, blocks=(Block(bytes=1, hosts=("w1", "w9")), Block(bytes=2)))
    read = {("a", "t"): Selection("t", ALWAYS, (partition,), ("day=0", "day=2/at=05%3A00"))}
    found = rename_hosts(read, cluster)
    flow = drawn("a == b", a={"sources": (Source(path="t"), Source(path="other"))})
    held, other = locate_sources(flow, found).steps[0].sources
    assert held.partitions[0].blocks == (Block(bytes=1, hosts=("w1.a.com", "w9")), Block(bytes=2))
    assert [partition_name(one) for one in held.partitions] == ["day=1", "day=0", "day=2/at=05%3A00"]
    assert other == Source(path="other")
    assert locate_sources(flow, {}) is flow


@given(st.dictionaries(st.text(min_size=1), st.none() | st.text(min_size=1), max_size=3), st.none() | st.integers(0, 9))
def test_a_partition_by_its_name_is_that_partition(key: dict[str, str | None], bucket: int | None) -> None:
    """As far as its name tells: a value that spells null is null."""
    name = partition_name(Partition(key=dict(key), bucket=bucket))
    assert partition_name(parse_partition_name(name)) == name


def test_where_a_name_node_answers_and_what_it_is_asked() -> None:
    assert parse_location("hdfs://n:8020/my data/day=1")[1] == "/my data/day=1"
    assert parse_location("hdfs://[::1]:8020/t")[0] == ("http://[::1]:9870", "http://[::1]:50070")
    assert parse_location("hdfs:///t") == ((), "/t")
    asked = build_request("LISTSTATUS_BATCH", "/my data/at=05%3A00", "a&b", after="part 1")
    assert asked == "/webhdfs/v1/my%20data/at%3D05%253A00?op=LISTSTATUS_BATCH&user.name=a%26b&startAfter=part%201"


def test_a_page_of_a_folder_and_all_of_it() -> None:
    batch, whole = read_page(recorded("webhdfs_batch"), "n"), read_page(recorded("webhdfs_list"), "n")
    assert [(one.path_suffix, one.is_folder, one.length) for one in batch.names] == [
        ("bardir", True, 0),
        ("bazfile", False, 1366),
    ]
    assert (batch.more, whole.more) == (True, False)
    assert {one.path_suffix for one in whole.names} == {"day=2013-01-01", "day=2013-01-02"}


def test_blocks_of_hadoop_3_and_of_hadoop_2() -> None:
    """A copy on a node that is leaving, and all copies of a corrupt block, are none."""
    newer = read_blocks(recorded("webhdfs_locations"), "n")
    assert newer == (
        Block(bytes=134217728, hosts=("w1.example.com", "w2.example.com", "w3.example.com")),
        Block(bytes=1000, hosts=("w2.example.com",)),
        Block(bytes=24),
    )
    older = read_blocks(recorded("webhdfs_located"), "n")
    assert [block.hosts for block in older] == [("127.0.0.3",), ()]
    assert older[0].bytes == 4096


def test_rows_of_another_application_are_a_source_under_the_name_of_their_dataset() -> None:
    """a ══> b <══ c: a's rows are stored on w1; of c's nothing is known"""
    cluster = Cluster(manager="yarn", workers=(Worker(id="w1", host="w1.a.com", cores=1, memory_mb=1),))
    held = Partition(key={"day": 1}, blocks=(Block(bytes=7, hosts=("w1",)),))
    flow, read = add_stored_sources(drawn("a == b; c == b"), {"a/": Source(path="a/", partitions=(held,))})
    assert read == {("b", "a/"): Selection("a/", ALWAYS, (held,))}
    (source,) = next(step.sources for step in locate_sources(flow, rename_hosts(read, cluster)).steps if step.id == "b")
    assert [block.hosts for one in source.partitions for block in one.blocks] == [("w1.a.com",)]
    assert all(not step.sources for step in flow.steps if step.id != "b")


def test_copies_on_data_nodes_that_do_not_live_are_none() -> None:
    live = read_live_hosts(recorded("namenode_info"), "n")
    assert live == {"w1.example.com"}
    assert [block.hosts for block in read_blocks(recorded("webhdfs_locations"), "n", live)] == [
        ("w1.example.com",),
        (),
        (),
    ]


def test_a_refusal_says_why() -> None:
    why = read_refusal(recorded("webhdfs_refused"), "n")
    assert why.exception == "IllegalArgumentException"
    assert why.message.startswith('Invalid value for webhdfs parameter "op"')


FIELDS = st.sampled_from(["FileStatuses", "BlockLocations", "LocatedBlocks", "beans", "LiveNodes", "x"])
VALUES = st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(FIELDS, x))


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_what_is_no_answer_is_said_to_be_none(content: bytes) -> None:
    for read in (read_page, read_blocks, read_live_hosts, read_refusal):
        with suppress(ClusterUnknown):
            read(content, "n")
