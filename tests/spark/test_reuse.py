"""Which steps need not run, and what their fingerprints cover. No Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import Manifest, Needed, Repeat, StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.reuse.ends import End
from airflow_dagsched.spark.reuse.filing import make_filing
from airflow_dagsched.spark.reuse.reusable_steps import Known, Selection, compute_fingerprints, select_steps
from tests.spark.test_lineage import step


def manifest(*specs: StepSpec, targets: tuple[str, ...] | None = None, repeats: tuple[Repeat, ...] = ()) -> Manifest:
    ids = tuple(spec.id for spec in specs) if targets is None else targets
    return Manifest("1", "3.11", "d", "f", "g", "run", 1, 0, "/w", "", "key", ids, specs, repeats=repeats)


def chosen(made: Manifest, committed: str = "", at_hand: str = "", **ends: object) -> Selection:
    """``ends``: steps that ended without rows -> the plain value they returned."""

    def end(name: str) -> End | None:
        return End(name, "run", TryId(), "", ends[name]) if name in ends else None

    there, read = committed.split(), at_hand.split()
    return select_steps(made, Known(lambda output: output.step in there, lambda output: output.step in read, end))


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


def test_a_leaf_without_rows_runs_until_it_ends_well() -> None:
    """a -> n: n leaves a value, or nothing."""
    made = manifest(step("a"), step("n", "a"))
    assert chosen(made).run == {"a", "n"}
    assert set(chosen(made, n=None).reused) == {"a", "n"}


def test_a_value_is_there_for_whoever_reads_it() -> None:
    """a -> n (a value) -> r: r gets it from n's end; rows, which n returned the last time, it does not."""
    made = manifest(step("a"), step("n", "a"), step("r", "n"))
    assert (chosen(made, n=7).run, set(chosen(made, n=7).reused)) == ({"r"}, {"a", "n"})
    assert chosen(made, n=None).run == {"a", "n", "r"}
    assert chosen(made, r=None).run == set()


def test_a_value_for_another_group_is_there() -> None:
    """n's reader is in another group: its rows were to be stored, but it returned a value."""
    assert chosen(manifest(step("n", store=("",))), n=7).reused == {"n": "it ended well in this run"}


def test_a_cleared_step_that_was_called_since_is_not_called_again() -> None:
    """a, cleared, is handed over to b, which is right: the try after the clear called it."""
    a, b = step("a", force=True), step("b", "a", store=("",))
    assert chosen(manifest(a, b), "b").run == {"a"}
    assert chosen(manifest(a, b), "b", a=None).run == set()


def test_a_block_without_rows_ends_as_one() -> None:
    """(a -> b) repeated, for its effect."""
    block = (step("a", repeat="l"), step("b", "a", repeat="l"))
    made = manifest(*block, repeats=(Repeat("l", ("a", "b"), 2),))
    assert chosen(made, a=None).run == {"a", "b"}
    assert set(chosen(made, a=None, b=None).reused) == {"a", "b"}


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
    return dict(compute_fingerprints(made, "4.2.0", lambda table, *_: f"{table.location} {generation}"))


READER = step("a", reads=(Table("/in"),))


@pytest.mark.parametrize(
    "other",
    [
        prints(replace(READER, code="x"), step("b", "a", within_run=False)),
        prints(READER, step("b", "a", within_run=False), generation="2"),
        prints(READER, step("b", "a", within_run=False), interval_key="other"),
        prints(READER, step("b", "a", within_run=False), package_version="2"),
    ],
    ids=["code", "declared read", "interval", "version"],
)
def test_what_changes_a_step_changes_what_is_below(other: dict[str, str]) -> None:
    same = prints(READER, step("b", "a", within_run=False))
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
    """a may read anything, b not."""
    b = step("b", within_run=False)
    one, other = prints(step("a"), b), prints(step("a"), b, run_id="other")
    assert [one[name] == other[name] for name in "ab"] == [False, True]


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
    assert compute_fingerprints(made, "4", broken) != compute_fingerprints(made, "4", broken)


def static(name: str, *reads: str, **spec: object) -> StepSpec:
    return step(name, *reads, **{"dated": False, "within_run": False, **spec})


def test_the_interval_counts_where_a_step_can_see_it() -> None:
    """a (static) -> b (static) -> c (asks for the interval) -> d; e declares its reads and asks for nothing."""
    specs = (static("a"), static("b", "a"), static("c", "b", dated=True), static("d", "c"), static("e", reads=()))
    one, other = prints(*specs), prints(*specs, interval_key="other")
    assert [one[name] == other[name] for name in "abcde"] == [True, True, False, False, True]


def test_what_is_read_of_a_table_counts_whoever_wrote_it() -> None:
    """w (static) writes all of /t; r reads of it what steps below, which are dated, need."""
    w = static("w", writes=Table("/t"))
    days = [
        static("r", after=("w",), reads=(Table("/t"),), needed={"/t": Needed((f"day={day}",))}) for day in (1, 1, 2)
    ]
    first, again, other = (prints(w, r)["r"] for r in days)
    assert first == again != other


def test_undeclared_reads_are_of_one_incarnation() -> None:
    """A run that was deleted and made again with its id is another."""
    one, other = (prints(step("a"), incarnation=begun) for begun in ("2026-01-01", "2026-01-02"))
    assert one["a"] != other["a"]


@pytest.mark.parametrize(
    ("upper", "lower", "again"),
    [
        (Table("/t"), Table("/t", mode="append"), True),
        (Table("/t", partition_by=("day",)), Table("/t", partition_by=("day",)), True),
        (Table("/t", mode="append"), Table("/t", mode="append"), False),
        (Table("/t"), Table("/other"), False),
    ],
    ids=["whole, then append", "partitions", "appends", "two tables"],
)
def test_who_writes_a_table_after_another_does_so_again(upper: Table, lower: Table, again: bool) -> None:
    """u ~~> l, one table: u's rows are written anew, and l's, which are there, belong on top of them."""
    made = manifest(step("u", writes=upper), step("l", after=("u",), writes=lower))
    assert chosen(made, "l").run == ({"u", "l"} if again else {"u"})


def test_filing() -> None:
    """Under the fingerprint: what is the same for every interval, but for tables that writes add to."""
    steps = (
        static("rows", store=("",)),
        static("whole", writes=Table("/whole")),
        static("added", writes=Table("/added", mode="append")),
        static("days", writes=Table("/days", partition_by=("day",))),
        static("named", writes=Table("catalog.table")),
        static("dated", dated=True),
        static("below", "dated"),
    )
    made = manifest(*steps)
    filing = make_filing(made, prints(*steps))
    keys = {spec.id: filing.get_key(spec) for spec in steps}
    assert {name for name, key in keys.items() if key == "key"} == {"added", "days", "named", "dated", "below"}
    assert filing.get_key(steps[2], "beside") == f"every-{prints(*steps)['added'][:16]}"


def test_what_another_run_shared_is_not_made_again() -> None:
    """s (shared) -> d: s is there; or a scan that was not worth it, so that s goes with d."""
    made = manifest(step("s", share=("",)), step("d", "s"))
    assert chosen(made, "s").run == {"d"}
    assert chosen(made).run == {"s", "d"}
    assert chosen(made, d=None).run == set()
