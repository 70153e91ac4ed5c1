"""Runs the steps of one manifest in one Spark application.

Facts first (fingerprints, commits), then the decision what runs (``reuse.select``), then the turns: a step's
begins when all above it had theirs, at most ``slots`` side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime
from graphlib import TopologicalSorter

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.manifest import Manifest, Needed, StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.repeat import run_block
from airflow_dagsched.spark.driver.run_step import run_step
from airflow_dagsched.spark.files.stores import open_store
from airflow_dagsched.spark.inputs import reads
from airflow_dagsched.spark.inputs.listing import compute_generation, compute_others_generation
from airflow_dagsched.spark.outputs.commits import CommitLog
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.reuse.earlier import Earlier
from airflow_dagsched.spark.reuse.ends import Ends
from airflow_dagsched.spark.reuse.filing import Filing, make_filing
from airflow_dagsched.spark.reuse.reusable_steps import Known, Selection, compute_fingerprints, select_steps
from airflow_dagsched.spark.session import actions, sessions
from airflow_dagsched.spark.session.dataframe_cache import Kept
from airflow_dagsched.spark.steps.ledger import Ledger
from airflow_dagsched.spark.steps.lineage import Lineage
from airflow_dagsched.spark.steps.payload import Payload
from airflow_dagsched.spark.steps.step_results import Shelf


def run_group(app: Application) -> bool:
    """Take all turns; whether all targets ended well."""
    actions.listen_to_actions()
    reads.narrow_reads()
    sessions.share_builder()
    blocks = {repeat.steps: repeat for repeat in app.manifest.repeats}

    def take(unit: tuple[str, ...]) -> None:
        if unit in blocks:
            run_block(app, blocks[unit])
        else:
            run_step(app, unit[0])

    in_order(app.lineage, take, app.manifest.slots)
    app.ledger.finish()
    return app.ledger.ok


def in_order(lineage: Lineage, take: Callable[[tuple[str, ...]], None], slots: int) -> None:
    """Call ``take`` for each unit, those above first, at most ``slots`` at once, ties as in the manifest."""
    position = {unit: index for index, unit in enumerate(lineage.units)}
    order: TopologicalSorter[tuple[str, ...]] = TopologicalSorter(lineage.list_dependencies())
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
    *,
    ends: Ends,
) -> Application:
    """Find out what has to run, and set the table for it."""
    interval, store = interval_of(manifest), open_store(spark, manifest.work_dir)

    def generation(table: Table, writers: tuple[StepSpec, ...], needed: Needed | None) -> str:
        if not writers:
            return compute_generation(spark, store, table, interval, needed)
        keys = [(outputs.get_output_key(spec), manifest.interval_key, outputs.name_writer(spec)) for spec in writers]
        return compute_others_generation(
            spark, table, interval, [own for key in keys if (own := log.find_latest(*key))]
        )

    prints = compute_fingerprints(manifest, spark.version, generation)
    filing = make_filing(manifest, prints)
    earlier = Earlier(manifest, log, ends, outputs, prints, filing)
    selection = _selected(manifest, Known(earlier.is_right, earlier.is_at_hand, earlier.find_end), outputs, filing)
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
        filing=filing,
        reused=selection.reused,
        found=earlier.read,
        commits=earlier.find_commit,
        end=earlier.find_end,
        ends=ends,
        kept=kept,
        shelf=shelf,
        ledger=Ledger(lineage, frozenset(manifest.targets), emit, shelf.release_step),
    )


def _selected(manifest: Manifest, known: Known, outputs: Outputs, filing: Filing) -> Selection:
    """What runs, decided as the writer of all that runs of other intervals would make as well.

    They wait here, all in one order, and find it made then, before a step of theirs is called for it.
    """
    selection = select_steps(manifest, known)
    places = _lasting(manifest, selection, outputs, filing)
    if not places:
        return selection
    for place in sorted(places):
        outputs.keeper.reserve_lease(*place)
    selection = select_steps(manifest, known)
    for place in places - _lasting(manifest, selection, outputs, filing):
        outputs.keeper.give_up(*place)
    return selection


def _lasting(manifest: Manifest, selection: Selection, outputs: Outputs, filing: Filing) -> frozenset[tuple[str, str]]:
    specs = [spec for spec in manifest.steps if spec.id in selection.run]
    return frozenset().union(*(filing.list_lasting_places(spec, outputs.get_output_key) for spec in specs))


def interval_of(manifest: Manifest) -> Interval:
    """The interval as steps see it."""
    ends = (datetime.fromisoformat(text) if text else None for text in (manifest.interval_start, manifest.interval_end))
    return Interval(manifest.interval_key, *ends)
