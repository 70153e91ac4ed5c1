"""What becomes of each dataset, by who reads it. No Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.manifest import Repeat, StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.steps.lineage import Lineage


def step(name: str, *reads: str, after: tuple[str, ...] = (), **spec: object) -> StepSpec:
    inputs = tuple(Output(each) for each in reads)
    return StepSpec(name, "", inputs=inputs, upstream=(*reads, *after), **spec)  # type: ignore[arg-type]


def modes(lineage: Lineage) -> dict[str, str]:
    return {spec.id: lineage.choose_mode(Output(spec.id), False) for spec in lineage.specs}


def test_one_reader_several_readers_none() -> None:
    """a -> b -> (table), a -> c, c -> d."""
    lineage = Lineage((step("a"), step("b", "a", writes=Table("/b")), step("c", "a"), step("d", "c")))
    assert modes(lineage) == {"a": "defer", "b": "write", "c": "lazy", "d": "run"}
    assert lineage.choose_mode(Output("a"), True) == "lazy"


def test_who_waits_for_an_end_has_it_kept() -> None:
    """a -> b, a ~~> c; x -> y where y runs even if x fails."""
    lineage = Lineage((step("a"), step("b", "a"), step("c", after=("a",)), step("x"), step("y", "x", rule="all_done")))
    assert lineage.awaited == {"a", "x"}
    assert modes(lineage) == {"a": "keep", "b": "run", "c": "run", "x": "keep", "y": "run"}
    assert lineage.choose_mode(Output("a"), True) == "keep"


def test_a_reused_step_reads_nothing() -> None:
    """a -> b (reused), a -> c: c alone reads a."""
    lineage = Lineage((step("a"), step("b", "a"), step("c", "a")), reused=frozenset({"b"}))
    assert lineage.readers == {Output("a"): ("c",)}
    assert lineage.choose_mode(Output("a"), False) == "lazy"


def test_a_repeat_block_is_one_unit() -> None:
    """init -> (a -> b -> a ...) -> out: its rows and its inputs are kept, what passes inside is its own."""
    specs = (step("init"), step("a", "init", repeat="l"), step("b", "a", repeat="l"), step("out", "b"))
    lineage = Lineage(specs, (Repeat("l", ("a", "b"), 3),))
    assert lineage.units == (("init",), ("a", "b"), ("out",))
    assert lineage.list_dependencies() == {("init",): set(), ("a", "b"): {("init",)}, ("out",): {("a", "b")}}
    assert lineage.readers == {Output("init"): ("a",), Output("b"): ("out",)}
    assert [lineage.choose_mode(Output(name), False) for name in ("init", "b")] == ["keep", "keep"]
    assert lineage.list_wanted("a", [""]) == ()


@st.composite
def chains(draw: st.DrawFn) -> Lineage:
    """Random steps, each reading any of those before it."""
    specs: list[StepSpec] = []
    for number in range(draw(st.integers(1, 12))):
        reads = draw(st.sets(st.sampled_from([spec.id for spec in specs]), max_size=3)) if specs else set()
        rule = draw(st.sampled_from(["all_success", "all_done", "none_failed", "one_failed"]))
        store = draw(st.sampled_from([(), ("",)]))
        specs.append(step(f"s{number}", *sorted(reads), rule=rule, store=store))
    return Lineage(tuple(specs))


@given(chains())
def test_only_one_reader_that_can_wait_is_served_lazily(lineage: Lineage) -> None:
    """A lazy dataset has one reader, which takes no decision on how its writer ended."""
    for spec in lineage.specs:
        readers = lineage.readers.get(Output(spec.id), ())
        if lineage.choose_mode(Output(spec.id), False) == "lazy":
            assert len(readers) == 1
            assert lineage.by_id[readers[0]].rule in ("all_success", "none_failed")
            assert not spec.store
        elif not readers:
            assert lineage.choose_mode(Output(spec.id), False) in ("run", "write")


@given(chains())
def test_dependencies_are_all_that_is_directly_above(lineage: Lineage) -> None:
    """Every step is above itself never, and after all it reads."""
    for spec in lineage.specs:
        assert lineage.list_dependencies()[spec.id,] == {(up,) for up in spec.upstream}
        assert spec.id not in lineage.above[spec.id]
        assert set(spec.upstream) <= lineage.above[spec.id]
