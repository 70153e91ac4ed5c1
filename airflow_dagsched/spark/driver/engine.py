"""The way of one group through its Spark application, from its manifest to whether it ended well.

::

    outputs ── what earlier applications made ── the application ── its steps, in order ── the rest is said
    (torn swaps finished)   (what runs, is reused, is not needed)   (``slots`` side by side)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import datetime
from functools import partial
from graphlib import TopologicalSorter
from typing import Any, Literal

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import MadeAgain
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.manifest import Manifest
from airflow_dagsched.launch.steps.turns import Coming, Gate, TurnPlan, Unit
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.look_ahead import StepCalls
from airflow_dagsched.spark.driver.run_step import call_early, run_step
from airflow_dagsched.spark.driver.stored_reads import MoreAsked
from airflow_dagsched.spark.inputs import reads
from airflow_dagsched.spark.outputs.commits import Committed
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.outputs.schemas import read_schema, read_whole
from airflow_dagsched.spark.reuse.ends import Ends
from airflow_dagsched.spark.reuse.select_reusable import Reusable, select_reusable
from airflow_dagsched.spark.session import actions, sessions
from airflow_dagsched.spark.session.dataframe_cache import Kept
from airflow_dagsched.spark.steps.ledger import Ledger
from airflow_dagsched.spark.steps.lineage import Lineage
from airflow_dagsched.spark.steps.payload import Payload
from airflow_dagsched.spark.steps.step_results import Shelf
from airflow_dagsched.spark.telling.task_sets import TaskSets

LOOK_AGAIN_S = 0.1
"""Between two looks for a core for the next step."""


def run_group(
    spark: SparkSession,
    manifest: Manifest,
    payload: Payload,
    emit: Callable[..., None],
    *,
    mask: Callable[[Any], Any] = lambda value: value,
    watch: Callable[[Outputs], AbstractContextManager[None]] = lambda outputs: nullcontext(),
) -> bool:
    """Run the group; whether all its targets ended well.

    :param mask: takes the secrets out of a value that is recorded.
    :param watch: what goes on beside the steps, from when there are outputs until the last step has ended.
    """
    # Closed last: leases are held, and renewed, until nothing is written any more.
    with closing(Outputs.open(spark, manifest)) as outputs, watch(outputs):
        ends, whole = Ends(outputs.store, manifest, mask), frozenset[Output]()
        # Ends: each time more datasets are made whole.
        while True:
            reusable = select_reusable(spark, manifest, make_interval(manifest), outputs, ends, whole)
            app = make_application(spark, manifest, payload, emit, outputs, reusable, whole=whole)
            emit_made_again(app, reusable.earlier.too_narrow)
            try:
                return run_application(app)
            except MoreAsked:
                whole |= app.stored.asked.keys()
                # Known now, whatever becomes of this run: the next one stores that as well.
                emit(app.stored.describe_asked())
                for spec in app.lineage.specs:
                    app.shelf.release_step(spec.id)


def run_application(app: Application) -> bool:
    """Run its steps; whether all targets ended well."""
    actions.listen_to_actions()
    reads.narrow_reads()
    sessions.share_builder()
    sets = TaskSets(app.spark)
    told = app.manifest
    plan = TurnPlan(told.order, told.begins, told.instances, told.cores // sets.task_cores)
    gate = Gate(plan, sets.look, sets.count_cores)
    uncalled = app.lineage.uncalled | frozenset(app.reused)
    run_in_order(app.lineage, partial(run_unit, app), app.manifest.slots, plan, gate, uncalled)
    ok = app.ledger.finish()
    if ok and app.manifest.keep_columns == "used":
        tell_columns_read(app)
    return ok


def tell_columns_read(app: Application) -> None:
    """Say what was read of stored datasets, if all that may read of them was called and executed."""
    targets = app.manifest.targets
    if all(app.ledger.get_state(step) == "success" for step in targets):
        read = app.stored.describe_reads(frozenset(targets))
        if read.read:
            app.emit(read)


def emit_made_again(app: Application, too_narrow: Mapping[Output, Committed]) -> None:
    """Say which datasets are made again for their columns, or rows, to the first that reads them here."""
    for output, found in too_narrow.items():
        readers = [step for step in app.lineage.readers.get(output, ()) if step in app.manifest.targets]
        if output.step in app.lineage.by_id and output.step not in app.reused:
            hearer = readers[0] if readers else output.step
            cause: Literal["other_code", "more_columns"] = "more_columns" if output in app.whole else "other_code"
            columns, kept = len(read_whole(found).names), len(read_schema(found).names)
            app.emit_for(hearer, MadeAgain(hearer, output.key, cause, kept, columns, found.where))


def run_unit(app: Application, unit: tuple[str, ...]) -> None:
    """The turn of a step, or of all steps of a repeat block. Raises ``MoreAsked``."""
    app.stored.raise_if_asked()
    block = next((repeat for repeat in app.manifest.repeats if repeat.steps == unit), None)
    if block is not None:
        from airflow_dagsched.spark.driver.repeat import run_block  # few groups have a loop, and each start pays

        run_block(app, block)
    else:
        run_step(app, unit[0])


def run_in_order(
    lineage: Lineage,
    take: Callable[[Unit], None],
    slots: int,
    plan: TurnPlan,
    gate: Gate,
    uncalled: frozenset[str] = frozenset(),
) -> None:
    """Call ``take`` for each unit, those above first, at most ``slots`` at once, in the plan's order.

    :param uncalled: steps whose turn calls nothing: they need neither slot nor core.
    """
    rank, above = plan.rank_units(lineage.units), lineage.list_dependencies()
    coming, ended = Coming(above), set[Unit]()
    order: TopologicalSorter[Unit] = TopologicalSorter(above)
    order.prepare()
    ready: list[Unit] = []
    running: dict[Future[None], Unit] = {}
    with ThreadPoolExecutor(max_workers=slots, thread_name_prefix="dagsched-step") as pool:
        while order.is_active():
            # graphlib gives no order among those that are ready.
            ready = sorted([*ready, *order.get_ready()], key=rank.__getitem__)
            for unit in (idle := [unit for unit in ready if uncalled.issuperset(unit)]):
                ready.remove(unit)
                take(unit)
                ended.add(unit)
                order.done(unit)
            # Others may be ready by that, before anybody is waited for.
            if idle:
                continue
            # The first that finds no core is not overtaken.
            while ready and len(running) < slots:
                at_work = [*running.values()]
                if not gate.is_open(ready[0], at_work, time.monotonic(), coming.list_coming(at_work, ended)):
                    break
                unit = ready.pop(0)
                running[pool.submit(take, unit)] = unit
            for unit in _await_ends(running, LOOK_AGAIN_S if ready and len(running) < slots else None):
                ended.add(unit)
                order.done(unit)


def _await_ends(running: dict[Future[None], Unit], most_s: float | None) -> list[Unit]:
    """Wait, for so long at most, until a unit has ended; those that have, which are out of ``running``."""
    ended, _ = wait(running, most_s, FIRST_COMPLETED)
    for future in ended:
        # Raises what is no step's failure: then the whole group ends.
        future.result()
    return [running.pop(future) for future in ended]


def make_application(
    spark: SparkSession,
    manifest: Manifest,
    payload: Payload,
    emit: Callable[..., None],
    outputs: Outputs,
    reusable: Reusable,
    *,
    whole: frozenset[Output] = frozenset(),
) -> Application:
    """The application before its first turn, with the steps that have one."""
    selection, earlier = reusable.selection, reusable.earlier
    specs = tuple(spec for spec in manifest.steps if spec.id in selection.run or spec.id in selection.reused)
    lineage = Lineage(specs, manifest.repeats, frozenset(selection.reused))
    kept = Kept(spark.sparkContext)
    shelf, calls = Shelf(kept), StepCalls()

    def release(step: str) -> None:
        shelf.release_step(step)
        calls.release(step)

    return Application(
        spark=spark,
        manifest=manifest,
        interval=make_interval(manifest),
        lineage=lineage,
        payload=payload,
        emit=emit,
        outputs=outputs,
        fingerprints=reusable.fingerprints,
        filing=reusable.filing,
        reused=selection.reused,
        found=earlier.read,
        commits=earlier.find_commit,
        end=earlier.find_end,
        ends=reusable.ends,
        kept=kept,
        shelf=shelf,
        ledger=Ledger(lineage, frozenset(manifest.targets), emit, release),
        call_early=call_early,
        calls=calls,
        whole=whole,
        records=earlier.find_record,
    )


def make_interval(manifest: Manifest) -> Interval:
    """The interval as steps see it."""
    ends = (datetime.fromisoformat(text) if text else None for text in (manifest.interval_start, manifest.interval_end))
    return Interval(manifest.interval_key, *ends)
