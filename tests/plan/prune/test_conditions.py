"""Conditions against an oracle: SQLite evaluates the same text on every row."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.dataflow import Partition, Source
from airflow_dagsched.plan.pruning.conditions.condition import find_values
from airflow_dagsched.plan.pruning.conditions.matching import match_keys
from airflow_dagsched.plan.pruning.conditions.readings import compare_values, infer_kinds
from airflow_dagsched.plan.pruning.conditions.truth import ANYTHING, FALSE, TRUE, combine_by_and, negate_truth
from airflow_dagsched.plan.pruning.conditions.where import parse_condition
from airflow_dagsched.plan.pruning.layout import partition_name
from airflow_dagsched.plan.pruning.pruning_input import PruningInput, name_interval
from airflow_dagsched.plan.pruning.sources import combine_condition, select_listed
from airflow_dagsched.plan.report.sentences import say_source_kept

DAYS = ["2013-01-01", "2013-01-02", "2013-02-10"]
HOURS = [0, 5, 10]
CARRIERS = ["AA", "B6", "ab"]
AMOUNTS = [None, 1, 7]
DAY = name_interval(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC), "2013-01-01")


def comparisons(column: str, literals: list[str]) -> st.SearchStrategy[str]:
    one = st.sampled_from(literals)
    signs = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "!="])
    return st.one_of(
        st.builds(lambda sign, value: f"{column} {sign} {value}", signs, one),
        st.builds(lambda sign, value: f"{value} {sign} {column.upper()}", signs, one),
        st.builds(lambda low, high: f"{column} between {low} and {high}", one, one),
        st.builds(lambda values: f"{column} in ({', '.join(values)})", st.lists(one, min_size=1, max_size=3)),
        st.builds(lambda values: f"{column} not in ({', '.join(values)})", st.lists(one, min_size=1, max_size=3)),
        st.sampled_from([f"{column} is null", f"{column} is not null"]),
    )


def texts(leaves: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        leaves,
        lambda parts: st.one_of(
            st.builds(lambda one, other: f"({one} and {other})", parts, parts),
            st.builds(lambda one, other: f"({one} or {other})", parts, parts),
            st.builds(lambda one: f"not ({one})", parts),
        ),
        max_leaves=6,
    )


ON_PARTITIONS = st.one_of(
    comparisons("day", ["'2013-01-01'", "'2013-01-02'", "'2013-01-15'"]),
    comparisons("hour", ["0", "5", "7", "-1"]),
    comparisons("carrier", ["'AA'", "'B'", "'ab'"]),
)
ON_DATA = st.one_of(comparisons("amount", ["1", "5"]), st.just("lower(carrier) = 'ab'"), st.just("hour + 5 = amount"))


def matching_rows(text: str) -> set[tuple[str, int, str]]:
    with sqlite3.connect(":memory:") as base:
        base.execute("create table t (day text, hour integer, carrier text, amount integer)")
        base.executemany("insert into t values (?, ?, ?, ?)", product(DAYS, HOURS, CARRIERS, AMOUNTS))
        return set(base.execute(f"select distinct day, hour, carrier from t where {text}"))


def kept(text: str, *, typed: bool) -> set[tuple[str, int, str]]:
    """Of all partitions; ``typed``: the hour is known to be a number, else it is a folder's text."""
    rows = list(product(DAYS, HOURS, CARRIERS))
    keys = [{"Day": day, "hour": hour if typed else str(hour), "carrier": carrier} for day, hour, carrier in rows]
    found = match_keys(parse_condition(text, {}), keys)
    assert isinstance(found, tuple), found
    return {row for row, keep in zip(rows, found, strict=True) if keep}


@settings(max_examples=150, deadline=None)
@given(texts(ON_PARTITIONS | ON_DATA), st.booleans())
def test_no_partition_with_a_matching_row_is_left_out(text: str, typed: bool) -> None:
    assert matching_rows(text) <= kept(text, typed=typed)


@settings(max_examples=150, deadline=None)
@given(texts(ON_PARTITIONS), st.booleans())
def test_of_conditions_on_partition_columns_all_others_are_left_out(text: str, typed: bool) -> None:
    assert matching_rows(text) == kept(text, typed=typed)


TRUTHS = st.integers(1, 7)


@given(TRUTHS, TRUTHS, TRUTHS)
def test_sets_of_truth_values_follow_kleene(one: int, other: int, third: int) -> None:
    assert negate_truth(negate_truth(one)) == one
    assert combine_by_and(one, other) == combine_by_and(other, one)
    assert combine_by_and(one, combine_by_and(other, third)) == combine_by_and(combine_by_and(one, other), third)
    assert combine_by_and(one, TRUE) == one
    assert combine_by_and(one, FALSE) == FALSE


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("day = interval.start", ["2013-01-01"]),
        ("interval.start = day", ["2013-01-01"]),
        ("DAY >= interval.start and day < interval.end", ["2013-01-01"]),
        ("day between interval.start and interval.end", ["2013-01-01", "2013-01-02"]),
        ("day = interval.key", ["2013-01-01"]),
        ("day = DATE '2013-01-02'", ["2013-01-02"]),
        ("day = cast('2013-01-02' as date)", ["2013-01-02"]),
        ("day = TIMESTAMP '2013-01-02 00:00:00'", ["2013-01-02"]),
        ("day >= '2013-02'", ["2013-02-10"]),
        ("day <=> '2013-01-02'", ["2013-01-02"]),
        ("day in ('2013-01-01', '2013-01-02') and true", ["2013-01-01", "2013-01-02"]),
        ("false", []),
        ("to_date(day) = '2013-01-02'", DAYS),
        ("day like '2013-01%'", DAYS),
        ("day = current_date()", DAYS),
        ("`interval`.start = day", DAYS),
        ("day >", DAYS),
        ("day = null", DAYS),
        ("day in ('2013-01-01', null)", DAYS),
        ("day = 'it''s'", DAYS),
        ("day = 5", DAYS),
    ],
)
def test_what_is_read_for_a_day(text: str, days: list[str]) -> None:
    """What is not understood leaves nothing out."""
    source = Source(path="/t", where=text, partitions=tuple(Partition(key={"day": day}) for day in DAYS))
    found = select_listed(source, combine_condition("s", source, PruningInput(names=DAY)))
    assert [partition.key["day"] for partition in found.needed] == days
    assert len(found.needed) + len(found.left_out) == len(DAYS)


@pytest.mark.parametrize(
    ("keys", "text", "reason"),
    [
        ([{"day": None}, {"day": "2013-01-01"}], "day = '2013-01-01'", "day is null in a partition"),
        ([{"day": "__HIVE_DEFAULT_PARTITION__"}], "day = '2013-01-01'", "day is null in a partition"),
        ([{"day": "2013-01-01"}, {}], "day = '2013-01-01'", "not every partition says its day"),
        ([{"day": "1 Jan"}], "day = interval.start", "day = '2013-01-01 00:00:00+00:00' cannot be told of day '1 Jan'"),
        (
            [{"day": "2013-01"}],
            "day = interval.start",
            "day = '2013-01-01 00:00:00+00:00' cannot be told of day '2013-01'",
        ),
        ([{"day": "2013-01-01"}], "day = null", "day = NULL compares with null"),
        ([{"day": "2013-01-01"}], "day = interval.key", "day = interval.key compares with null"),
    ],
)
def test_a_null_or_unreadable_key_turns_pruning_off(keys: list[dict[str, str | None]], text: str, reason: str) -> None:
    """For the whole source, with the reason."""
    source = Source(path="/t", where=text, partitions=tuple(Partition(key=key) for key in keys))
    asked = PruningInput(names={**DAY, "interval.key": None})
    found = select_listed(source, combine_condition("s", source, asked))
    assert (len(found.needed), found.left_out) == (len(keys), ())
    assert found.objection is not None
    assert say_source_kept(found.objection) == reason


@pytest.mark.parametrize(
    ("values", "sign", "literal", "expected"),
    [
        (["01", "2"], "=", "1", TRUE | FALSE),  # text says no, an integer yes
        (["01", "x"], "=", "1", FALSE),  # a column with an x is text
        (["01"], "=", 1, TRUE),
        (["x"], "=", 1, ANYTHING),
        ([1], "=", "01", TRUE | FALSE),
        (["10", "9"], ">", "5", TRUE | FALSE),
        (["10", "9"], ">", 5, TRUE),
        (["5.5"], "=", 5, TRUE | FALSE),  # cut to an integer where ANSI mode is off
        (["AA "], "=", "AA", ANYTHING),  # a column of fixed width
        ([True], "=", True, TRUE),
        (["yes"], "=", True, TRUE),
        (["true"], "=", "TRUE", TRUE | FALSE),
        ([20130101], "=", datetime(2013, 1, 1, tzinfo=UTC), ANYTHING),
        (["12345678901234567"], "=", 12345678901234567, ANYTHING),
        (["2013-1-1"], "=", "2013-01-01", TRUE | FALSE),
    ],
)
def test_readings(values: list[str], sign: str, literal: object, expected: int) -> None:
    """Of the first value, under each type its column may have."""
    assert compare_values(values[0], sign, literal, infer_kinds(values)) == expected  # type: ignore[arg-type]


def test_an_hour_is_of_its_day_and_of_a_zone_nobody_names() -> None:
    """05:00 may mean the day's folder, and no other day's. Half past midnight at +01:00 is of two days."""
    for start, days in (
        (datetime(2013, 1, 2, 5, tzinfo=UTC), ["2013-01-02"]),
        (datetime.fromisoformat("2013-01-02T00:30:00+01:00"), ["2013-01-01", "2013-01-02"]),
    ):
        source = Source(path="/t", partitions=tuple(Partition(key={"day": day}) for day in DAYS))
        found = select_listed(source, parse_condition("day = interval.start", {"interval.start": start}))
        assert [partition.key["day"] for partition in found.needed] == days


def test_the_run_says_another_condition_than_the_author_and_sql_one_more() -> None:
    source = Source(path="/t", where="day = interval.start")
    asked = PruningInput(where={"/t": "day = '2013-01-02'"}, queries={("s", "/t"): parse_condition("hour = 1", {})})
    assert str(combine_condition("s", source, asked)) == "day = '2013-01-02' and hour = 1"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("id = 1", {1}),
        ("id in (1, 2) and x > 3", {1, 2}),
        ("id = 1 or id = 2", {1, 2}),
        ("id = 1 or x = 2", None),
        ("id > 1", None),
        ("id = 1 and id = 2", set()),
        ("not id = 1", None),
    ],
)
def test_values_a_column_is_one_of(text: str, values: set[int] | None) -> None:
    assert find_values(parse_condition(text, {}), "id") == values


def test_spelled_keys_are_folders() -> None:
    key = {"day": "2013-01-01", "at": "05:00", "flag": True, "none": None}
    assert partition_name(Partition(key=key)) == "day=2013-01-01/at=05%3A00/flag=true/none=__HIVE_DEFAULT_PARTITION__"
