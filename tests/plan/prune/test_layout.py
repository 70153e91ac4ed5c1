"""Stored datasets: names of folders, the walk that lists no more than it must, buckets."""

from __future__ import annotations

from datetime import date
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.dataflow import Buckets, Partition, Source
from airflow_dagsched.plan.pruning.buckets import bucket_of, find_needed_buckets
from airflow_dagsched.plan.pruning.conditions.condition import Comparison, Value
from airflow_dagsched.plan.pruning.conditions.where import parse_condition
from airflow_dagsched.plan.pruning.layout import list_stored, make_folder_name, partition_name, split_folder_name
from airflow_dagsched.plan.pruning.sources import select_found, select_listed
from airflow_dagsched.plan.reasons.pruning import ColumnNull
from tests.plan.prune.test_conditions import ON_DATA, ON_PARTITIONS, texts
from tests.plan.prune.trees import Tree

#: d=1 ─┬─ h=0 ── a, _SUCCESS      d=2 ── h=1 ─┬─ b
#:      └─ h=1 ── (nothing)                     └─ .b.crc
ORDERS = {"/t/d=1/h=0/a": 5, "/t/d=1/h=0/_SUCCESS": 0, "/t/d=1/h=1/.x": 1, "/t/d=2/h=1/b": 7, "/t/d=2/h=1/.b.crc": 1}


def found(files: dict[str, int], where: str) -> tuple[list[str], list[str]]:
    """Folders that are read and folders that were listed."""
    tree = Tree(files)
    listing = list_stored(tree, "/t", parse_condition(where, {}))
    return [stored.folder for stored in listing.stored], tree.asked


def test_folders_that_cannot_match_are_not_listed() -> None:
    assert found(ORDERS, "d = 2") == (["d=2/h=1"], ["/t", "/t/d=2", "/t/d=2/h=1"])
    assert found(ORDERS, "d = 1") == (["d=1/h=0"], ["/t", "/t/d=1", "/t/d=1/h=0", "/t/d=1/h=1"])
    assert found(ORDERS, "h = 1 and amount > 3")[0] == ["d=2/h=1"]
    assert found(ORDERS, "d = 9") == ([], ["/t"])


def test_a_listing_says_what_it_left_out() -> None:
    listing = list_stored(Tree(ORDERS), "/t/", parse_condition("d = 2", {}))
    (stored,) = listing.stored
    assert (stored.folder, stored.partition.key, stored.partition.bytes) == ("d=2/h=1", {"d": "2", "h": "1"}, 7)
    assert listing.left_out == ("d=1",)
    chosen = select_found(Source(path="/t"), parse_condition("d = 2", {}), listing)
    assert ([partition_name(one) for one in chosen.needed], chosen.left_out, chosen.is_empty) == (
        ["d=2/h=1"],
        ("d=1",),
        False,
    )


def test_no_match_is_empty_and_no_folder_is_not() -> None:
    condition = parse_condition("d = 9", {})
    assert select_found(Source(path="/t"), condition, list_stored(Tree(ORDERS), "/t", condition)).is_empty
    with pytest.raises(FileNotFoundError):
        list_stored(Tree(ORDERS), "/nowhere", condition)


def test_a_null_folder_anywhere_lists_all() -> None:
    files = {**ORDERS, "/t/d=2/h=__HIVE_DEFAULT_PARTITION__/c": 1}
    listing = list_stored(Tree(files), "/t", parse_condition("h = 1", {}))
    assert len(listing.stored) == 3
    assert (listing.left_out, listing.objection) == ((), ColumnNull("h"))


def test_files_without_partitions_and_in_other_folders() -> None:
    listing = list_stored(Tree({"/t/a": 1, "/t/sub/b": 2}), "/t", parse_condition("d = 1", {}))
    assert [(stored.folder, stored.partition.key) for stored in listing.stored] == [("", {}), ("sub", {})]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(min_size=1))
def test_names_of_folders_read_back(column: str, value: str) -> None:
    if value != "__HIVE_DEFAULT_PARTITION__" and value.isprintable() and column.isprintable():
        assert split_folder_name(make_folder_name(column, value)) == (column, value)
        assert "/" not in make_folder_name(column, value)
    assert split_folder_name(make_folder_name("c", None)) == ("c", None)


@settings(max_examples=150, deadline=None)
@given(texts(ON_PARTITIONS | ON_DATA))
def test_the_walk_finds_what_the_whole_list_gives(where: str) -> None:
    keys = [
        {"day": day, "hour": str(hour), "carrier": carrier}
        for day, hour, carrier in product(["2013-01-01", "2013-02-10"], [5, 10], ["AA", "ab"])
    ]
    partitions = tuple(Partition(key=key, bytes=1) for key in keys)
    condition = parse_condition(where, {})
    listing = list_stored(Tree({f"/t/{partition_name(one)}/file": 1 for one in partitions}), "/t", condition)
    chosen = select_listed(Source(path="/t", partitions=partitions), condition)
    assert [stored.folder for stored in listing.stored] == [partition_name(one) for one in chosen.needed]


BY_ID = Buckets(column="id", count=4, type="int")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", 1, -559580957),
        ("bigint", 1, -1712319331),
        ("string", "Spark", 228093765),
        ("string", "", 142593372),
        ("string", "aé", 1643998218),
        ("date", date(2013, 1, 1), -1477305664),
    ],
)
def test_the_hash_is_sparks(kind: str, value: Value, expected: int) -> None:
    """``SELECT hash(...)`` of Spark 4.2."""
    buckets = Buckets(column="id", count=1_000_000, type=kind)  # type: ignore[arg-type]
    assert find_needed_buckets(Comparison("id", "=", value), buckets) == {expected % 1_000_000}


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("id = 1", 1),
        ("id in (1, 2, 3, 4, 5)", 2),
        ("id > 1", None),
        ("id = '1'", None),
        ("id = 3000000000", None),
        ("x = 1", None),
    ],
)
def test_buckets_of_equalities_only(where: str, count: int | None) -> None:
    needed = find_needed_buckets(parse_condition(where, {}), BY_ID)
    assert (None if needed is None else len(needed)) == count


def test_only_the_needed_buckets_are_read() -> None:
    """1 is in bucket 3 of 4: -559580957 mod 4."""
    files = {f"/t/part-00000-x_{bucket:05}.c000.snappy.parquet": 10 for bucket in range(4)}
    condition = parse_condition("id = 1", {})
    listing = list_stored(Tree(files), "/t", condition, BY_ID)
    chosen = select_found(Source(path="/t", buckets=BY_ID), condition, listing)
    assert [partition_name(one) for one in chosen.needed] == ["bucket 3"]
    assert chosen.left_out == ("bucket 0", "bucket 1", "bucket 2")


def test_a_file_without_a_bucket_is_always_read() -> None:
    assert (bucket_of("part-00000-x_00003.c000.snappy.parquet"), bucket_of("data.parquet")) == (3, None)
    source = Source(path="/t", buckets=BY_ID, partitions=(Partition(bucket=2), Partition()))
    assert select_listed(source, parse_condition("id = 1", {})).needed == (Partition(),)
