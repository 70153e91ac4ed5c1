"""The comparer finds what differs, and nothing else: two tables of equal rows in any order, file by file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.compare import difference

NUMBERS = st.floats(min_value=1, max_value=1e6)
ROWS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", None]), NUMBERS), min_size=1, max_size=20)


def table(folder: str, name: str, rows: list[tuple[int, str | None, float]]) -> Path:
    """A table of the columns k, t, x."""
    made = Path(folder, name)
    made.mkdir()
    columns = dict(zip("ktx", map(list, zip(*rows, strict=True)), strict=True))
    pyarrow.parquet.write_table(
        pa.table(columns, schema=pa.schema({"k": "int64", "t": "string", "x": "float64"})), made / "p.parquet"
    )
    return made


@settings(max_examples=30, deadline=None)
@given(rows=ROWS, data=st.data())
def test_order_and_last_digits_do_not_count(rows: list[tuple[int, str | None, float]], data: st.DataObject) -> None:
    """Shuffled, and off by less than 1e-9 relative: equal."""
    shuffled = [(k, t, x * (1 + 1e-12)) for k, t, x in data.draw(st.permutations(rows))]
    with tempfile.TemporaryDirectory() as folder:
        assert difference(table(folder, "one", rows), table(folder, "other", shuffled)) == ""


@settings(max_examples=30, deadline=None)
@given(rows=ROWS, data=st.data())
def test_one_changed_value_is_found(rows: list[tuple[int, str | None, float]], data: st.DataObject) -> None:
    """A float off by a thousandth, another key, or a row more."""
    at = data.draw(st.integers(0, len(rows) - 1))
    k, t, x = rows[at]
    changed = data.draw(st.sampled_from([[(k, t, x * 1.001)], [(k + 10, t, x)], [(k, t, x)] * 2, [(k, "c", x)]]))
    with tempfile.TemporaryDirectory() as folder:
        other = table(folder, "other", [*rows[:at], *changed, *rows[at + 1 :]])
        assert difference(table(folder, "one", rows), other) != ""
