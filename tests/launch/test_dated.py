"""Which steps are the same for every interval."""

from __future__ import annotations

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.steps.dated import find_dated, find_shared


def step(name: str, *reads: str, **spec: object) -> StepSpec:
    facts = {"dated": False, "within_run": False, **spec}
    return StepSpec(name, "", inputs=tuple(Output(each) for each in reads), **facts)  # type: ignore[arg-type]


def test_what_is_below_a_dated_step_is_dated() -> None:
    """airports -> names -> delays (dated) -> worst; names -> places."""
    specs = (
        step("airports", reads=()),
        step("names", "airports"),
        step("delays", "names", dated=True),
        step("worst", "delays"),
        step("places", "names"),
    )
    assert find_dated(specs) == {"delays", "worst"}
    assert find_dated(specs, also=["names"]) == {"names", "delays", "worst", "places"}


def test_a_step_that_may_read_anything_is_dated() -> None:
    assert find_dated((step("a", within_run=True), step("b", reads=(Table("/in"),)))) == {"a"}


def test_who_reads_a_table_that_a_dated_step_writes_is_dated() -> None:
    """w (dated) writes /t, r reads it."""
    w, r = step("w", dated=True, writes=Table("/t")), step("r", reads=(Table("/t/"),))
    assert find_dated((w, r)) == {"w", "r"}


def test_steps_of_one_loop_are_dated_together() -> None:
    """(a -> b) repeated, b fed back to a: what a gets from the second round on is dated."""
    assert find_dated((step("a", repeat="l"), step("b", "a", repeat="l", dated=True))) == {"a", "b"}


def test_what_other_intervals_need_is_shared_at_the_edge() -> None:
    """
    airports -> names ─┬─> delays (dated)          names, for delays and for places, which leaves no rows
                       └─> places
    carriers -> codes -> (whole table)             nothing: the table is there
    hubs -> days -> (a table by partitions)        hubs: days are written for each interval
    """
    specs = (
        step("airports"),
        step("names", "airports"),
        step("delays", "names", dated=True),
        step("places", "names"),
        step("carriers"),
        step("codes", "carriers", writes=Table("/codes")),
        step("hubs"),
        step("days", "hubs", writes=Table("/days", partition_by=("day",))),
    )
    assert find_shared(specs, find_dated(specs)) == {"names": ("",), "hubs": ("",)}
