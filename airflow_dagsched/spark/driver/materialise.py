"""What becomes of the DataFrames a step returned: written, kept, run, or handed over as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import LeftOut
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.outputs.commits import Committed, Narrowing
from airflow_dagsched.spark.session.observed import count_all
from airflow_dagsched.spark.session.plan_columns import select_columns
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

    def describe(self) -> Iterator[str]:
        """What is left out, for the step's log."""
        if self.left_out is not None and self.left_out.kept < self.left_out.columns:
            yield self.left_out.describe()
        if self.kept_rows is not None and self.kept_rows != self.rows:
            whole = "its" if self.rows is None else self.rows
            yield f"{self.kept_rows} of {whole} rows, those that all its readers take"

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
        bare = (many or name in app.lineage.by_id[step].share) and is_bare_scan(app.stored.look_through(frames[name]))
        mode = app.lineage.choose_mode(output, bare)
        if mode == "defer" and (app.manifest.keep_columns == "all" or len(frames[name].columns) < FEWEST_COLUMNS):
            mode = "keep"
        planned = Planned(output, frames[name], mode, bare)
        found.append(_narrow_stored(app, planned) if mode == "write" else planned)
    return tuple(found)


def _narrow_stored(app: Application, each: Planned) -> Planned:
    """Of a dataset that is stored for steps alone what they are known to read."""
    spec = app.lineage.by_id[each.output.step]
    is_table = spec.writes is not None and not each.output.name
    if is_table or spec.id not in app.manifest.targets or each.output in app.whole:
        return each
    narrow = _narrow_rows(each, spec.where.get(each.output.name, ()))
    positions = _choose_positions(each.df.columns, spec.narrow.get(each.output.name))
    if positions is None:
        return narrow
    return replace(narrow, df=select_columns(narrow.df, positions), whole=each.df)


def _narrow_rows(each: Planned, where: tuple[str, ...]) -> Planned:
    """The rows that fulfil these conditions; all of them are made, and counted."""
    if not where:
        return each
    from airflow_dagsched.spark.session.written_conditions import select_rows  # each start pays for an import

    counted = count_all(each.df)
    rows, fulfilled = select_rows(counted.df, where)
    if not fulfilled:
        return each
    return replace(each, df=rows, whole=each.df, counted=counted, where=fulfilled)


def _choose_positions(names: list[str], wanted: tuple[str, ...] | None) -> list[int] | None:
    """Of the columns that are stored; None: of all."""
    if wanted is None or len(names) < FEWEST_COLUMNS:
        return None
    # One at least: a file of none has no rows.
    positions = [at for at, name in enumerate(names) if name in wanted] or [0]
    return positions if len(positions) < len(names) else None


def materialise_part(app: Application, session: SparkSession, each: Planned) -> Part:
    """Run the job, if there is one now, and put the rows where readers find them."""
    match each.mode:
        case "write":
            return _write_part(app, session, each)
        case "keep":
            from airflow_dagsched.spark.session.cache_filling import fill_cache  # each start pays for an import

            app.shelf.put_kept(each.output, each.df)
            kept = fill_cache(each.df)
            return Part("keep", rows=kept.rows, width=estimate_width(each.df), kept_bytes=kept.size)
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
        narrowed = None
        if each.whole is not None:
            narrowed = Narrowing(each.whole.schema.json(), spec.way, each.where, each.counted)
        committed = app.outputs.write_dataset(each.df, spec, name, fingerprint, interval, narrowed)
    if app.lineage.readers.get(each.output):
        app.shelf.put_ready(each.output, app.outputs.read(committed, session), committed)
    part = Part("write", committed.rows, committed, left_out=_compare(each), kept_rows=committed.stored_rows)
    for line in part.describe():
        print(f"{f'{name}: ' if name else ''}stored {line}")
    return part


def _compare(each: Planned) -> LeftOut | None:
    if each.whole is None:
        return None
    columns = len(each.whole.columns)
    return replace(compare_columns(each.whole, each.df) or LeftOut(columns, columns, 1.0), where=each.where)


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
