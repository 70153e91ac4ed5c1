"""Which steps need not run, and what their fingerprints cover. No Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_dagsched.launch.calls import Output
from airflow_dagsched.launch.manifest import Manifest, Repeat, StepSpec
from airflow_dagsched.launch.tables import Table
from airflow_dagsched.spark.reuse import Selection, fingerprints, select
from tests.spark.test_lineage import step


def manifest(*specs: StepSpec, targets: tuple[str, ...] | None = None, repeats: tuple[Repeat, ...] = ()) -> Manifest:
    ids = tuple(spec.id for spec in specs) if targets is None else targets
    return Manifest("1", "3.11", "d", "f", "g", "run", 1, 0, "/w", "", "", "key", ids, specs, repeats=repeats)


def chosen(made: Manifest, committed: str = "", at_hand: str = "") -> Selection:
    return select(made, lambda output: output.step in committed.split(), lambda output: output.step in at_hand.split())


A_B_C = (step("a"), step("b", "a", store=("",)), step("c", "b", store=("",)))


@pytest.mark.parametrize(
    ("committed", "run", "reused"),
    [("", "a b c", ""), ("b", "c", "a b"), ("b c", "", "a b c"), ("c", "a b", "c")],
)
def test_a_chain(committed: str, run: str, reused: str) -> None:
    """a -> b (stored) -> c (stored): a is pipelined and goes with b."""
    found = chosen(manifest(*A_B_C), committed)
    assert (" ".join(sorted(found.run)), " ".join(sorted(found.reused))) == (run, reused)


def test_a_cleared_step_without_a_commit_runs() -> None:
    """a is handed over only: cleared, it runs although b and c, which are right, do not need it."""
    found = chosen(manifest(replace(A_B_C[0], force=True), *A_B_C[1:]), "b c")
    assert (found.run, set(found.reused)) == ({"a"}, {"b", "c"})


def test_a_leaf_without_commit_always_runs() -> None:
    """a -> n: n's value is nowhere, so it is made again, and a for it."""
    assert chosen(manifest(step("a"), step("n", "a"))).run == {"a", "n"}


def test_an_output_that_was_not_committed_is_made_for_its_reader() -> None:
    """a leaves x (stored) and y (read by b): x is there, but b needs y."""
    a = step("a", store=("x",))
    b = StepSpec("b", "", inputs=(Output("a", "y"),), upstream=("a",))
    assert chosen(manifest(a, b), "a").run == {"a", "b"}


def test_earlier_groups_run_only_if_their_data_is_gone() -> None:
    """a -> b (earlier group) -> c (target)."""
    made = manifest(*A_B_C, targets=("c",))
    assert chosen(made, at_hand="b").run == {"c"}
    assert chosen(made).run == {"a", "b", "c"}
    assert chosen(made, committed="c").run == set()


def test_a_block_is_reused_as_one() -> None:
    """(a -> b) repeated, b stored."""
    block = (step("a", repeat="l"), step("b", "a", repeat="l", store=("",)))
    made = manifest(*block, repeats=(Repeat("l", ("a", "b"), 2),))
    assert set(chosen(made, "b").reused) == {"a", "b"}
    assert chosen(made).run == {"a", "b"}


def prints(*specs: StepSpec, generation: str = "1", **fields: object) -> dict[str, str]:
    made = replace(manifest(*specs), **fields)  # type: ignore[arg-type]
    return dict(fingerprints(made, "4.2.0", lambda table, *_: f"{table.location} {generation}"))


READER = step("a", reads=(Table("/in"),))


@pytest.mark.parametrize(
    "other",
    [
        prints(replace(READER, code="x"), step("b", "a", takes_session=False)),
        prints(READER, step("b", "a", takes_session=False), generation="2"),
        prints(READER, step("b", "a", takes_session=False), interval_key="other"),
        prints(READER, step("b", "a", takes_session=False), package_version="2"),
    ],
    ids=["code", "declared read", "interval", "version"],
)
def test_what_changes_a_step_changes_what_is_below(other: dict[str, str]) -> None:
    same = prints(READER, step("b", "a", takes_session=False))
    assert same["a"] != other["a"]
    assert same["b"] != other["b"]


@pytest.mark.parametrize(
    "other",
    [
        Table("/t", "csv"),
        Table("/t", partition_by=("day",)),
        Table("/t", mode="append"),
        Table("/t", options={"compression": "zstd"}),
    ],
    ids=["format", "partitions", "mode", "options"],
)
def test_a_table_written_in_another_way_is_another(other: Table) -> None:
    one = step("a", reads=(), writes=Table("/t"))
    assert prints(one) == prints(replace(one, writes=Table("/t")))
    assert prints(one) != prints(replace(one, writes=other))


def test_undeclared_reads_are_the_runs_own() -> None:
    """a sees the session and declares nothing; b sees its inputs alone, c declares."""
    c = step("c", reads=())
    b = step("b", takes_session=False)
    one, other = prints(step("a"), b, c), prints(step("a"), b, c, run_id="other")
    assert [one[name] == other[name] for name in "abc"] == [False, True, True]


def test_a_table_written_above_counts_as_its_writer() -> None:
    """w writes all of /t, r (after w) declares it: what is there now does not matter, what w would make does."""
    w, r = step("w", reads=(), writes=Table("/t")), step("r", after=("w",), reads=(Table("/t"),))
    assert prints(w, r) == prints(w, r, generation="2")
    assert prints(w, r)["r"] != prints(replace(w, code="x"), r)["r"]


@pytest.mark.parametrize("written", [Table("/t", partition_by=("day",)), Table("/t", mode="append")])
def test_what_others_write_into_a_table_written_above_counts(written: Table) -> None:
    """w adds to /t, r (after w) reads all of it: r is the same only if w and the rest are."""
    w, r = step("w", reads=(), writes=written), step("r", after=("w",), reads=(Table("/t"),))
    assert prints(w, r) == prints(w, r)
    one, other = prints(w, r), prints(w, r, generation="2")
    assert [one[name] == other[name] for name in "wr"] == [True, False]
    assert one["r"] != prints(replace(w, code="x"), r)["r"]


def test_a_read_that_fails_equals_nothing() -> None:
    def broken(table: Table, _: tuple[StepSpec, ...]) -> str:
        raise OSError(table.location)

    made = manifest(READER)
    assert fingerprints(made, "4", broken) != fingerprints(made, "4", broken)
