"""The steps of a dataflow in this process, one after the other, nothing committed: for unit tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.manifest import Manifest, Repeat, StepSpec
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.repeat import Block
from airflow_dagsched.spark.driver.run_step import Turn, call_early
from airflow_dagsched.spark.reuse.filing import Filing
from airflow_dagsched.spark.session import actions, sessions
from airflow_dagsched.spark.session.current import work_for
from airflow_dagsched.spark.session.dataframe_cache import Kept
from airflow_dagsched.spark.steps.ledger import Ledger, Made
from airflow_dagsched.spark.steps.lineage import Lineage, Mode
from airflow_dagsched.spark.steps.payload import Payload
from airflow_dagsched.spark.steps.step_results import Shelf
from airflow_dagsched.version import __version__


@dataclass(frozen=True)
class OpenLineage(Lineage):
    """Every dataset is handed to the test, which executes what it looks at."""

    def list_wanted(self, step: str, returned: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({*returned, *self.list_requested(step)}))

    def choose_mode(self, output: Output, bare_scan: bool) -> Mode:
        return "lazy"


def rehearse_steps(
    specs: tuple[StepSpec, ...],
    calls: Mapping[str, Call],
    *,
    interval: Interval,
    context: Mapping[str, Any],
    inputs: Mapping[str, Any],
    repeats: tuple[Repeat, ...],
    spark: SparkSession,
) -> dict[str, Any]:
    """See ``airflow_dagsched.local.run_local``."""
    app = _make_application(specs, calls, interval, context, repeats, spark)
    actions.listen_to_actions()
    sessions.share_builder()
    results = {step: _convert_input(value, spark) for step, value in inputs.items()}
    for step, value in results.items():
        # As if its turn had been: readers take it from the shelf, like any step's rows.
        _put_input(app.shelf, step, value)
        app.ledger.end_turns(Made(step, "success"))
    app.ledger.end_turns(*(Made(step, "success") for step in results))
    blocks = {repeat.steps: repeat for repeat in repeats}
    for unit in app.lineage.units:
        left = [step for step in unit if step not in inputs]
        if left:
            _run_unit(app, unit, blocks)
            results.update({step: _read_result(app, step) for step in left})
    return {spec.id: results[spec.id] for spec in app.lineage.specs}


def _make_application(
    specs: tuple[StepSpec, ...],
    calls: Mapping[str, Call],
    interval: Interval,
    context: Mapping[str, Any],
    repeats: tuple[Repeat, ...],
    spark: SparkSession,
) -> Application:
    ids = tuple(spec.id for spec in specs)
    manifest = Manifest(
        __version__, "", "local", "local", "local", "local", 1, 0, "", "", interval.key, ids, specs,
        context=context, repeats=repeats,
    )  # fmt: skip
    lineage = OpenLineage(specs, repeats)
    kept = Kept(spark.sparkContext)
    return Application(
        spark=spark,
        manifest=manifest,
        interval=interval,
        lineage=lineage,
        payload=Payload(calls, {}),
        emit=lambda *_: None,
        outputs=None,
        fingerprints={},
        filing=Filing(interval.key, {}),
        reused={},
        found=_refuse_input,
        commits=lambda _: None,
        end=lambda _: None,
        ends=None,
        kept=kept,
        shelf=Shelf(kept),
        ledger=Ledger(lineage, frozenset(ids), lambda *_: None, lambda _: None),
        call_early=call_early,
    )


def _run_unit(app: Application, unit: tuple[str, ...], blocks: Mapping[tuple[str, ...], Repeat]) -> None:
    """The unit's turn; what its author's code raises is the test's to see."""
    early = [made for step in unit if (made := app.find_early_end(step)) is not None]
    if early:
        app.ledger.end_turns(*early)
    elif unit in blocks:
        app.ledger.end_turns(*Block(app, blocks[unit]).run())
    else:
        turn = Turn(app, unit[0], app.calls.begin_turn(unit[0]))
        with work_for(unit[0], turn.session):
            turn.run()


def _read_result(app: Application, step: str) -> Any:
    return app.shelf.collect_returned(step, app.spark)


def _convert_input(value: Any, spark: SparkSession) -> Any:
    """A list of dicts, or a pandas DataFrame, as a DataFrame; anything else as it is."""
    rows = isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    frame = type(value).__module__.startswith("pandas.") and type(value).__name__ == "DataFrame"
    return spark.createDataFrame(value) if rows or frame else value


def _put_input(shelf: Shelf, step: str, value: Any) -> None:
    named = isinstance(value, Mapping) and any(isinstance(item, DataFrame) for item in value.values())
    for name, item in value.items() if named else [("", value)]:
        shelf.put_ready(Output(step, name), item)


def _refuse_input(output: Output, session: SparkSession) -> DataFrame:
    raise KeyError(f"{output.step!r} has no output {output.name!r} here: give it in inputs={{{output.step!r}: ...}}")
