"""What an application finds of earlier ones, and what it therefore runs: the first thing it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.manifest import Manifest, Needed, StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.inputs.listing import compute_generation, compute_others_generation
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.reuse.earlier import Earlier
from airflow_dagsched.spark.reuse.ends import Ends
from airflow_dagsched.spark.reuse.filing import Filing, make_filing
from airflow_dagsched.spark.reuse.reusable_steps import Known, Selection, compute_fingerprints, select_steps


@dataclass(frozen=True)
class Reusable:
    """What is known of the steps of one manifest before any of them runs."""

    fingerprints: Mapping[str, str]
    filing: Filing
    earlier: Earlier
    ends: Ends
    selection: Selection


def select_reusable(
    spark: SparkSession,
    manifest: Manifest,
    interval: Interval,
    outputs: Outputs,
    ends: Ends,
    whole: frozenset[Output] = frozenset(),
) -> Reusable:
    """Facts first (what inputs are now, what was committed), then the decision what runs.

    :param whole: datasets of which more is asked for than is stored.
    """

    def generation(table: Table, writers: tuple[StepSpec, ...], needed: Needed | None) -> str:
        if not writers:
            return compute_generation(spark, table, interval, needed)
        keys = [(outputs.get_output_key(spec), manifest.interval_key, outputs.name_writer(spec)) for spec in writers]
        own = [found for key in keys if (found := outputs.log.find_latest(*key))]
        return compute_others_generation(spark, table, interval, own)

    prints = compute_fingerprints(manifest, spark.version, generation)
    filing = make_filing(manifest, prints)
    earlier = Earlier(manifest, outputs.log, ends, outputs, prints, filing, whole=whole)
    known = Known(earlier.is_right, earlier.is_at_hand, earlier.find_end)
    return Reusable(prints, filing, earlier, ends, _select_as_writer(manifest, known, outputs, filing))


def _select_as_writer(manifest: Manifest, known: Known, outputs: Outputs, filing: Filing) -> Selection:
    """What runs, decided as the writer of all that runs of other intervals would make as well.

    They wait here, all in one order, and find it made then, before a step of theirs is called for it.
    """
    selection = select_steps(manifest, known)
    places = _list_lasting_places(manifest, selection, outputs, filing)
    if not places:
        return selection
    for place in sorted(places):  # one order for all drivers: two that wait for each other would wait for ever
        outputs.keeper.reserve_lease(*place)
    selection = select_steps(manifest, known)  # who was waited for has committed meanwhile
    for place in places - _list_lasting_places(manifest, selection, outputs, filing):
        outputs.keeper.give_up(*place)
    return selection


def _list_lasting_places(
    manifest: Manifest, selection: Selection, outputs: Outputs, filing: Filing
) -> frozenset[tuple[str, str]]:
    specs = [spec for spec in manifest.steps if spec.id in selection.run]
    return frozenset().union(*(filing.list_lasting_places(spec, outputs.get_output_key) for spec in specs))
