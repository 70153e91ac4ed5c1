"""Facts of SQL texts, against SQLite: pruned tables give the same rows, and what is called empty is."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.plan.pruning.conditions.matching import match_keys
from airflow_dagsched.plan.pruning.conditions.query import read_query
from airflow_dagsched.plan.pruning.emptiness import find_causes_of_all, find_causes_of_any

ROWS = {
    "t": [(day, amount) for day in (1, 2, 3) for amount in (1, None, 5)],
    "u": [(day, amount) for day in (1, 2) for amount in (1, 6)],
}


@pytest.mark.parametrize(
    ("sql", "conditions", "empty_if"),
    [
        ("select a from t where day = 1", {"t": "day = 1"}, [{"t"}]),
        ("SELECT A FROM Db.T WHERE T.Day = 1", {"db.t": "day = 1"}, [{"db.t"}]),
        ("select count(*) from t where day = 1", {"t": "day = 1"}, []),
        ("select day, count(*) from t group by day", {"t": "true"}, [{"t"}]),
        ("select day, count(*) from t group by rollup(day)", {"t": "true"}, []),
        ("select count(*) from t group by all", {"t": "true"}, []),
        ("select day as d, count(*) from t group by all", {"t": "true"}, [{"t"}]),
        ("select upper(day), count(*) from t group by all", {"t": "true"}, []),
        ("select mystery(a) from t", {"t": "true"}, []),
        ("select * from t where lower(day) = 'x' or day = 1", {"t": "LOWER(day) = 'x' or day = 1"}, [{"t"}]),
        (
            "select * from t a join u b on a.x = b.x where a.day = 1 and b.day = 2",
            {"t": "day = 1 and b.day = 2", "u": "a.day = 1 and day = 2"},
            [{"t"}, {"u"}],
        ),
        ("select * from t left join u on 1=1 where u.day = 1", {"t": "u.day = 1", "u": "true"}, [{"t"}]),
        ("select * from t right join u on 1=1 where u.day = 1", {"t": "true", "u": "day = 1"}, [{"u"}]),
        ("select * from t full join u on 1=1 where u.day = 1", {"t": "true", "u": "true"}, [{"t", "u"}]),
        ("select * from t left semi join u on 1=1 where day = 1", {"t": "day = 1", "u": "true"}, [{"t"}, {"u"}]),
        ("select * from t left anti join u on 1=1", {"t": "true", "u": "true"}, [{"t"}]),
        ("select * from t where day = 1 union all select * from t where day = 2", {"t": "day = 1 or day = 2"}, [{"t"}]),
        ("select * from t union select * from u", {"t": "true", "u": "true"}, [{"t", "u"}]),
        ("select * from t except select * from u where day = 1", {"t": "true", "u": "day = 1"}, [{"t"}]),
        ("select * from t intersect select * from u", {"t": "true", "u": "true"}, [{"t"}, {"u"}]),
        (
            "with c as (select * from t where day = 1) select * from c where day = 2",
            {"t": "day = 1", "c": "day = 2"},
            [{"t"}],
        ),
        ("with t as (select * from t where day = 1) select * from t", {"t": "(true) or day = 1"}, [{"t"}]),
        ("with c as (select count(*) from t) select * from c", {"t": "true", "c": "true"}, []),
        ("select * from (select * from t where day = 1) s where s.hour = 2", {"t": "day = 1"}, [{"t"}]),
        (
            "select * from t where exists (select 1 from u where u.day = t.day and hour = 1)",
            {"t": "EXISTS(SELECT 1 FROM u WHERE u.day = t.day AND hour = 1)", "u": "u.day = t.day and hour = 1"},
            [{"t"}],
        ),
        ("select * from t lateral view explode(xs) e as day where day = 1", {"t": "true"}, [{"t"}]),
        ("select * from t tablesample (10 percent) where day = 1", {"t": "true"}, []),
        ("select * from t version as of 3 where day = 1", {"t": "true"}, []),
        ("select /*+ broadcast(t) */ * from t where day = 1", {"t": "day = 1"}, [{"t"}]),
        ("insert into x select * from t where day = 1", {"x": "true", "t": "day = 1"}, []),
        ("values (1)", {}, []),
        ("select 1", {}, []),
        ("delete from t where day = 1", {}, []),
        ("select * from t; select * from u", {}, []),
        ("select from where", {}, []),
    ],
)
def test_facts_of_a_query(sql: str, conditions: dict[str, str], empty_if: list[set[str]]) -> None:
    found = read_query(sql)
    assert {name: str(condition) for name, condition in found.conditions.items()} == conditions
    assert [set(cause) for cause in found.empty_if] == empty_if


JOINS = ["join", "left join", "right join", "full join", "cross join", ","]
PREDICATES = st.sampled_from(
    [
        "t.day = 1",
        "u.day = 2",
        "t.day in (2, 3)",
        "not t.day = 1",
        "u.day is null",
        "u.amount > 1",
        "t.day = u.day",
        "1 = 1",
    ]
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    join = draw(st.sampled_from(JOINS))
    on = "" if join in (",", "cross join") else f"on {draw(PREDICATES)}"
    joint = draw(st.sampled_from(["and", "or"]))
    where = f" {joint} ".join(draw(st.lists(PREDICATES, min_size=1, max_size=3)))
    single = st.sampled_from(
        ["t where day = 1", "t where not (day = 2 or amount = 5)", "u where day > 1 and amount = 6"]
    )
    select = draw(st.sampled_from(["t.day, t.amount", "count(*), max(t.amount)"]))
    query = f"select {select} from t {join} u {on} where {where}"
    sets = st.sampled_from(["union all", "union", "except", "intersect"])
    return f"{query} {draw(sets)} select day, amount from {draw(single)}" if draw(st.booleans()) else query


def answer(sql: str, rows: dict[str, list[tuple[int, int | None]]]) -> list[tuple[object, ...]]:
    with sqlite3.connect(":memory:") as base:
        for name, content in rows.items():
            base.execute(f"create table {name} (day integer, amount integer)")
            base.executemany(f"insert into {name} values (?, ?)", content)
        return sorted(base.execute(sql), key=repr)


@settings(max_examples=150, deadline=None)
@given(queries())
def test_pruned_tables_give_the_same_answer(sql: str) -> None:
    pruned = {}
    for name, condition in read_query(sql).conditions.items():
        kept = match_keys(condition, [{"day": day} for day, _ in ROWS[name]])
        assert isinstance(kept, tuple)
        pruned[name] = [row for row, keep in zip(ROWS[name], kept, strict=True) if keep]
    assert answer(sql, pruned) == answer(sql, ROWS)


@settings(max_examples=100, deadline=None)
@given(queries(), st.sets(st.sampled_from(["t", "u"])))
def test_what_is_called_empty_is_empty(sql: str, empty: set[str]) -> None:
    if any(cause <= empty for cause in read_query(sql).empty_if):
        assert answer(sql, {name: [] if name in empty else rows for name, rows in ROWS.items()}) == []


def test_causes_are_least_sets() -> None:
    """(a or b) and a is a; too many sets say nothing."""
    a, b = (frozenset("a"),), (frozenset("b"),)
    assert find_causes_of_all([find_causes_of_any([a, b]), a]) == a
    pairs = [(frozenset({f"x{at}"}), frozenset({f"y{at}"})) for at in range(7)]
    assert find_causes_of_all(pairs) == ()
