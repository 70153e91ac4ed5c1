"""Runs the steps of one manifest in one Spark application.

Facts first (fingerprints, commits), then the decision what runs (``reuse.select``), then the turns: a step's
begins when all above it had theirs, at most ``slots`` side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime
from graphlib import TopologicalSorter

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.calls import Output
from airflow_dagsched.launch.interval import Interval
from airflow_dagsched.launch.manifest import Manifest, Needed, StepSpec
from airflow_dagsched.launch.tables import Table
from airflow_dagsched.spark import actions, reads, sessions
from airflow_dagsched.spark.application import Application
from airflow_dagsched.spark.commits import CommitLog, Committed
from airflow_dagsched.spark.keep import Kept
from airflow_dagsched.spark.ledger import Ledger
from airflow_dagsched.spark.lineage import Lineage
from airflow_dagsched.spark.listing import input_generation, others_generation
from airflow_dagsched.spark.outputs import Outputs
from airflow_dagsched.spark.payload import Payload
from airflow_dagsched.spark.repeat import take_block_turn
from airflow_dagsched.spark.reuse import fingerprints, select
from airflow_dagsched.spark.shelf import Shelf
from airflow_dagsched.spark.stores import open_store
from airflow_dagsched.spark.turn import take_turn


def run_group(app: Application) -> bool:
    """Take all turns; whether all targets ended well."""
    actions.listen()
    reads.narrow()
    sessions.share_builder()
    blocks = {repeat.steps: repeat for repeat in app.manifest.repeats}

    def take(unit: tuple[str, ...]) -> None:
        if unit in blocks:
            take_block_turn(app, blocks[unit])
        else:
            take_turn(app, unit[0])

    in_order(app.lineage, take, app.manifest.slots)
    app.ledger.finish()
    return app.ledger.ok


def in_order(lineage: Lineage, take: Callable[[tuple[str, ...]], None], slots: int) -> None:
    """Call ``take`` for each unit, those above first, at most ``slots`` at once, ties as in the manifest."""
    position = {unit: index for index, unit in enumerate(lineage.units)}
    order: TopologicalSorter[tuple[str, ...]] = TopologicalSorter(lineage.dependencies())
    order.prepare()
    running: dict[Future[None], tuple[str, ...]] = {}
    with ThreadPoolExecutor(max_workers=slots, thread_name_prefix="dagsched-step") as pool:
        while order.is_active():
            for unit in sorted(order.get_ready(), key=position.__getitem__):
                running[pool.submit(take, unit)] = unit
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                future.result()
                order.done(running.pop(future))


def application(
    spark: SparkSession,
    manifest: Manifest,
    payload: Payload,
    emit: Callable[..., None],
    log: CommitLog,
    outputs: Outputs,
) -> Application:
    """Find out what has to run, and set the table for it."""
    interval, store = interval_of(manifest), open_store(spark, manifest.work_dir)

    def generation(table: Table, writers: tuple[StepSpec, ...], needed: Needed | None) -> str:
        if not writers:
            return input_generation(spark, store, table, interval, needed)
        keys = [(outputs.output_key(spec), manifest.interval_key, outputs.writer(spec)) for spec in writers]
        return others_generation(spark, table, interval, [own for key in keys if (own := log.latest(*key))])

    prints = fingerprints(manifest, spark.version, generation)
    commits = Commits(manifest, log, outputs, prints)
    selection = select(manifest, lambda output: commits.right(output) is not None, commits.at_hand)
    specs = tuple(spec for spec in manifest.steps if spec.id in selection.run or spec.id in selection.reused)
    lineage = Lineage(specs, manifest.repeats, frozenset(selection.reused))
    kept = Kept(spark.sparkContext)
    shelf = Shelf(kept)
    return Application(
        spark=spark,
        manifest=manifest,
        interval=interval,
        lineage=lineage,
        payload=payload,
        emit=emit,
        outputs=outputs,
        fingerprints=prints,
        reused=selection.reused,
        found=commits.read,
        commits=commits.right,
        kept=kept,
        shelf=shelf,
        ledger=Ledger(lineage, frozenset(manifest.targets), emit, shelf.release),
    )


class Commits:
    """What earlier applications committed of the manifest's steps."""

    def __init__(self, manifest: Manifest, log: CommitLog, outputs: Outputs, prints: Mapping[str, str]) -> None:
        self._manifest = manifest
        self._specs = {spec.id: spec for spec in manifest.steps}
        self._log = log
        self._outputs = outputs
        self._prints = prints

    def right(self, output: Output) -> Committed | None:
        """The newest commit, if it is what the step would make now and its data is there."""
        spec = self._specs[output.step]
        key, writer = self._outputs.output_key(spec, output.name), self._outputs.writer(spec)
        found = self._log.latest(key, self._manifest.interval_key, writer)
        if found is None or found.fingerprint != self._prints[spec.id] or (spec.force and not self._since_clear(found)):
            return None
        return found if self._outputs.holds(found) else None

    def _since_clear(self, found: Committed) -> bool:
        """Whether an earlier try made it after the step was cleared: then a retry reuses it all the same."""
        return (found.run_id, found.clear_number) == (self._manifest.run_id, self._manifest.clear_number)

    def at_hand(self, output: Output) -> bool:
        """Whether rows of an earlier group's step can be read."""
        return self._path(output) is not None or self.right(output) is not None

    def read(self, output: Output, session: SparkSession) -> DataFrame:
        """The rows, at the path this run knows, else of the right commit."""
        path = self._path(output)
        if path is not None:
            return self._outputs.read_path(path, session)
        committed = self.right(output)
        assert committed is not None, f"{output}: neither here nor committed"
        return self._outputs.read(committed, session)

    def _path(self, output: Output) -> str | None:
        path = self._manifest.datasets.get(f"{output.step}/{output.name}")
        table = self._specs[output.step].writes is not None and not output.name
        return path if path is not None and not table and self._outputs.exists(path) else None


def interval_of(manifest: Manifest) -> Interval:
    """The interval as steps see it."""
    ends = (datetime.fromisoformat(text) if text else None for text in (manifest.interval_start, manifest.interval_end))
    return Interval(manifest.interval_key, *ends)
