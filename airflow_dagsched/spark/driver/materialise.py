"""What becomes of the DataFrames a step returned: written, kept, run, or handed over as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import LeftOut
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.outputs.commits import Committed, Narrowing
from airflow_dagsched.spark.session.observed import count_all
from airflow_dagsched.spark.session.plan_columns import measure_kept, select_columns
from airflow_dagsched.spark.session.plan_markers import is_bare_scan
from airflow_dagsched.spark.steps.lineage import Mode
from airflow_dagsched.spark.steps.planned import Planned

FEWEST_COLUMNS = 4
"""Of a dataset with fewer all are kept: there is little to leave out."""


@dataclass(frozen=True, slots=True)
class Part:
    """One dataset of a step, materialised or handed over lazily."""

    mode: Mode
    rows: int | None = None
    """Counted by the job that made them; None where that job was not complete, or is still to come."""
    committed: Committed | None = None
    width: int = 0
    """Bytes of a row of what was counted, and not stored, by the types of its columns."""
    left_out: LeftOut | None = None
    """None: it has all its columns."""
    kept_bytes: int | None = None
    """Of what is kept for its readers, as measured."""
    kept_rows: int | None = None
    """Those that its readers take; None: all."""

    def list_metrics(self) -> dict[str, float]:
        """What is said of it in numbers, beside its rows."""
        out = self.left_out
        columns = {} if out is None else {"columns": out.columns, "kept_columns": out.kept}
        kept = {"kept_rows": self.kept_rows, "kept_bytes": self.kept_bytes}
        return {**columns, **{name: number for name, number in kept.items() if number is not None}}


def plan_parts(app: Application, step: str, frames: Mapping[str, DataFrame]) -> tuple[Planned, ...]:
    """What is to be done with each DataFrame."""
    found = []
    for name in app.lineage.list_wanted(step, frames) if frames else ():
        output = Output(step, name)
        many = len(app.lineage.readers.get(output, ())) > 1
        # Asked only where it decides anything: Spark has to print the plan for it.
        bare = (many or name in app.lineage.by_id[step].share) and is_bare_scan(frames[name])
        mode = app.lineage.choose_mode(output, bare)
        if mode == "defer" and (app.manifest.keep_columns == "all" or len(frames[name].columns) < FEWEST_COLUMNS):
            mode = "keep"
        planned = Planned(output, frames[name], mode, bare)
        found.append(_narrow_stored(app, planned) if mode == "write" else planned)
    return tuple(found)


def _narrow_stored(app: Application, each: Planned) -> Planned:
    """Of a dataset that is stored for steps alone the columns that they are known to read."""
    spec, names = app.lineage.by_id[each.output.step], each.df.columns
    wanted = spec.narrow.get(each.output.name)
    is_table = spec.writes is not None and not each.output.name
    if wanted is None or is_table or len(names) < FEWEST_COLUMNS or spec.id not in app.manifest.targets:
        return each
    # One at least: a file of none has no rows.
    positions = [at for at, name in enumerate(names) if name in wanted] or [0]
    if each.output in app.whole or len(positions) == len(names):
        return each
    return replace(each, df=select_columns(each.df, positions), whole=each.df)


def materialise_part(app: Application, session: SparkSession, each: Planned) -> Part:
    """Run the job, if there is one now, and put the rows where readers find them."""
    match each.mode:
        case "write":
            return _write_part(app, session, each)
        case "keep":
            app.shelf.put_kept(each.output, each.df)
            # Fills the cache: every partition is computed to be counted.
            rows = each.df.count()
            return Part("keep", rows=rows, width=estimate_width(each.df), kept_bytes=measure_kept(each.df))
        case "run":
            return Part("run", rows=run_all(each.df), width=estimate_width(each.df))
        case "defer":
            app.shelf.put_deferred(each.output, each.df)
            return Part("defer")
        case "lazy":
            app.shelf.put_lazy(each.output, each.df, each.bare_scan)
            return Part("lazy")


def _write_part(app: Application, session: SparkSession, each: Planned) -> Part:
    """Write and commit. Readers here read what was committed, as readers in other applications do."""
    assert app.outputs is not None, f"{each.output}: nothing is committed here"
    step, name = each.output.step, each.output.name
    spec = app.lineage.by_id[step]
    fingerprint, interval = app.fingerprints[step], app.filing.get_key(spec, name)
    if spec.writes is not None and not name:
        committed = app.outputs.write_table(each.df, spec, fingerprint, session, interval)
    else:
        narrowed = None if each.whole is None else Narrowing(each.whole.schema.json(), spec.way)
        committed = app.outputs.write_dataset(each.df, spec, name, fingerprint, interval, narrowed)
    if app.lineage.readers.get(each.output):
        app.shelf.put_ready(each.output, app.outputs.read(committed, session), committed)
    left_out = None if each.whole is None else compare_columns(each.whole, each.df)
    if left_out is not None:
        print(f"{f'{name}: ' if name else ''}stored {left_out.describe()}")
    return Part("write", committed.rows, committed, left_out=left_out)


def compare_columns(whole: DataFrame, kept: DataFrame) -> LeftOut | None:
    """How much of ``whole`` is ``kept``; None: all."""
    if len(whole.columns) == len(kept.columns):
        return None
    return LeftOut(len(whole.columns), len(kept.columns), estimate_width(kept) / estimate_width(whole))


def estimate_width(df: DataFrame) -> int:
    """As Spark's own optimizer takes it: texts for 20 bytes, and so on."""
    return int(df._jdf.schema().defaultSize())


def run_all(df: DataFrame) -> int | None:
    """Execute ``df`` completely, to nowhere, and count its rows on the way."""
    counted = count_all(df)
    # Spark's sink for nothing. ``count`` would not do: the optimizer leaves out columns that nobody counts.
    counted.df.write.format("noop").mode("overwrite").save()
    return counted.read()
