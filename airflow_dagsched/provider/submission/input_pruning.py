"""What one submit can leave out: facts about its inputs, gathered without Spark, and what follows from them.

    declared reads ──listed──> partitions ──┐
    datasets of earlier groups ──rows──> empty ──> steps with nothing to do, folders to read, sizes for the plan
    SQL texts ──> conditions, emptiness ────┘

Whatever cannot be known leaves nothing out: a listing that fails is a reason, not an error.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace as changed

from msgspec import Struct, field
from msgspec.structs import replace

from airflow_dagsched.errors import ClusterUnknown, InvalidInput
from airflow_dagsched.launch.protocol.keys import escape_key, name_hidden_folder
from airflow_dagsched.launch.protocol.manifest import Needed, StepSpec
from airflow_dagsched.launch.protocol.tables import FILE_FORMATS, Table, normalise_location
from airflow_dagsched.launch.steps.sql_facts import SqlFacts, read_sql_facts
from airflow_dagsched.model.dataflow import Dataflow, Source, Step
from airflow_dagsched.model.graph import build_graph
from airflow_dagsched.plan.pruning import PruningInput, list_stored, name_interval
from airflow_dagsched.plan.pruning.apply import combine_conditions
from airflow_dagsched.plan.pruning.columns import has_same_types
from airflow_dagsched.plan.pruning.conditions.condition import ALWAYS, Condition
from airflow_dagsched.plan.pruning.layout import Listing
from airflow_dagsched.plan.pruning.sources import Selection, select_found
from airflow_dagsched.plan.pruning.steps import find_idle_steps
from airflow_dagsched.plan.reasons.pruning import ListingRefused
from airflow_dagsched.plan.report.sentences import say_idle
from airflow_dagsched.provider.clusters.folder_listing import (
    HDFS,
    FileLister,
    Open,
    open_local_lister,
    resolve_location,
)
from airflow_dagsched.provider.submission.specs import Parts, Submit
from airflow_dagsched.provider.submission.stored import locate_stored

log = logging.getLogger(__name__)

OFF = PruningInput(mode=False)


class Pruning(Struct, frozen=True):
    """What is known of the inputs of one submit."""

    dataflow: Dataflow
    """With what its steps read, and whether they work without input, as far as that is known now."""
    asked: PruningInput = OFF
    selections: Mapping[tuple[str, str], Selection] = field(default_factory=dict)
    needed: Mapping[str, Mapping[str, Needed]] = field(default_factory=dict)
    """Step -> place of a table -> all that is read of it."""

    def apply_to_parts(self, parts: Parts) -> Parts:
        """The steps as the driver program is to see them."""
        idle = {step: say_idle(reason) for step, reason in self.asked.idle.items()}
        specs = (
            changed(spec, needed=self.needed.get(spec.id, {}), pruned=idle.get(spec.id, "")) for spec in parts.specs
        )
        return changed(parts, specs=tuple(specs))


def prune_inputs(submit: Submit, parts: Parts, master: Callable[[], str], listing: Open = open_local_lister) -> Pruning:
    """Look at the inputs of ``submit``; ``master``: Spark's, asked for only where a path does not say its file system.

    ``listing`` opens what lists a location.

    Raises :class:`InvalidInput` for a condition of the run on a table that no step reads.
    """
    where = _read_run_conditions(submit)
    # After the run's conditions were looked at: a misspelt one is refused in any case.
    if submit.flow.prune is False:
        return Pruning(submit.flow.graph.dataflow)
    listed = [spec for spec in parts.specs if spec.id in submit.targets or submit.states.get(spec.id) == "pruned"]
    told = {spec.id: read_sql_facts(call, spec.reads or ()) for spec in listed if (call := parts.calls[spec.id]).sql}
    asked = _build_pruning_input(submit, listed, told, where)
    dataflow = _describe_known_dataflow(submit, listed, told)
    steps = {step.id: step for step in dataflow.steps}
    look = _Look(submit, master, listing, {})
    found = {
        (spec.id, table.key): look.at(table, combine_conditions(steps[spec.id], table.key, asked), spec)
        for spec in listed
        for table in spec.reads or ()
    }
    selections = {key: seen.selection for key, seen in found.items()}
    idle = find_idle_steps(build_graph(dataflow), selections, asked).steps
    # Steps of other submits have ended, or will see for themselves.
    mine = {name: reason for name, reason in idle.items() if name in submit.targets}
    needed: dict[str, dict[str, Needed]] = {}
    for (name, key), seen in found.items():
        if seen.needed is not None:
            needed.setdefault(name, {})[key] = seen.needed
    asked = replace(asked, idle=mine, stored=locate_stored(submit, master, listing))
    return Pruning(dataflow, asked, selections, needed)


def _read_run_conditions(submit: Submit) -> dict[str, str]:
    """``{"dagsched": {"where": {path: condition}}}`` of the run's configuration, by place."""
    given = (submit.facts.conf.get("dagsched") or {}).get("where") or {}
    known = {table.key for step in submit.flow.steps.values() for table in step.declared.read_tables or ()}
    for path, condition in given.items():
        if normalise_location(path) not in known or not isinstance(condition, str):
            rule = f"{path!r}: {condition!r} is no condition on a declared read; there are {', '.join(sorted(known))}"
            raise InvalidInput(f"run {submit.facts.run_id!r}", "conf.dagsched.where", rule)
    return {normalise_location(path): condition for path, condition in given.items()}


def _build_pruning_input(
    submit: Submit, listed: list[StepSpec], told: Mapping[str, SqlFacts], where: Mapping[str, str]
) -> PruningInput:
    interval = submit.facts.interval
    return PruningInput(
        mode=submit.flow.prune,
        names=name_interval(interval.start, interval.end, interval.key),
        where=where,
        queries={(name, key): found for name, facts in told.items() for key, found in facts.conditions.items()},
        empty_if={name: facts.empty_if for name, facts in told.items() if facts.empty_if},
        empty=submit.empty,
        only_rows=frozenset(spec.id for spec in listed if spec.writes is None and not spec.store),
    )


def _describe_known_dataflow(submit: Submit, listed: list[StepSpec], told: Mapping[str, SqlFacts]) -> Dataflow:
    specs = {spec.id: spec for spec in listed}

    def known(step: Step) -> Step:
        spec = specs.get(step.id)
        if spec is None:
            return step
        sources = (Source(path=table.key, where=table.where) for table in spec.reads or ())
        return replace(
            step, sources=tuple(sources), works_without_input=_has_work(submit, step, spec, told.get(step.id))
        )

    whole = submit.flow.graph.dataflow
    return replace(whole, steps=tuple(known(step) for step in whole.steps))


def _has_work(submit: Submit, step: Step, spec: StepSpec, told: SqlFacts | None) -> bool:
    """Whether the step has something to do without rows: as declared, else as its SQL says.

    It has where an ordinary task takes the path of its rows, and where its table holds what an earlier run of this
    interval wrote. What SQL says does not reach as far as a table that is written as a whole: that would keep old rows.
    """
    if submit.flow.graph.consumed.get(step.id) or _has_written(submit, spec):
        return True
    if not step.works_without_input:
        return False
    # SQL over no rows writes none; but a table that is replaced as a whole has to lose its old ones.
    whole = spec.writes is not None and spec.writes.mode == "overwrite" and not spec.writes.partition_by
    return whole or told is None or not told.empty_if


def _has_written(submit: Submit, spec: StepSpec) -> bool:
    """Whether the step's table has a commit for this interval (for any, if it is replaced as a whole), or one
    cannot tell.
    """
    if spec.writes is None:
        return False
    table, work_dir = spec.writes, submit.flow.work_dir
    interval = "" if table.is_replaced_whole else f"/{escape_key(submit.facts.interval.key)}"
    if _has_files(f"{work_dir}/commits/{escape_key(table.key)}{interval}"):
        return True
    # A table of this machine's disk has its records beside it.
    if table.is_path and "://" not in table.key:
        return _has_files(f"{name_hidden_folder(os.path.realpath(table.key))}/commits{interval}")
    return _has_files(f"{work_dir}/tables")  # written before or not: where its records are, Spark alone knows


def _has_files(folder: str) -> bool:
    lister, path = FileLister.of(folder)
    try:
        return any(lister.list_children(path))  # the first entry is enough
    except FileNotFoundError:
        return False


class _Seen(Struct, frozen=True):
    """A table as one step needs it."""

    selection: Selection
    needed: Needed | None = None
    """None: all of it, or Spark chooses."""


class _Look(Struct, frozen=True):
    """Lists each table once for each condition."""

    submit: Submit
    master: Callable[[], str]
    listing: Open
    listings: dict[tuple[str, Condition], Listing | str]

    def at(self, table: Table, condition: Condition, reader: StepSpec) -> _Seen:
        off = self._explain_unlisted(table, condition, reader)
        listing = off or self._list_once(table, condition)
        if isinstance(listing, str):
            return _Seen(Selection(table.key, condition, objection=ListingRefused(listing), listed=False))
        selection = select_found(Source(path=table.key), condition, listing)
        return _Seen(selection, _find_needed(listing) if selection.objection is None else None)

    def _explain_unlisted(self, table: Table, condition: Condition, reader: StepSpec) -> str:
        """Why the table is not listed; empty: it is."""
        if not table.is_path or table.format not in FILE_FORMATS:
            return "only Spark knows its files"
        # An HDFS is listed all the same: it says which workers hold the blocks.
        if condition == ALWAYS and not table.location.startswith(HDFS):
            return "nothing says which of its partitions are needed"
        writers = (name for name in self.submit.targets if _does_write(self.submit, name, table))
        # What it will have written cannot be listed before it runs.
        writer = next((name for name in writers if name != reader.id), "")
        return f"step {writer!r} of the same application writes it" if writer else ""

    def _list_once(self, table: Table, condition: Condition) -> Listing | str:
        key = table.key, condition
        # Many steps read one table, and listing an object store takes seconds.
        if key not in self.listings:
            self.listings[key] = self._list_table(table, condition)
        return self.listings[key]

    def _list_table(self, table: Table, condition: Condition) -> Listing | str:
        url = table.location
        try:
            url = resolve_location(table.location, self.submit.flow.conf, self.master)
            with self.listing(url) as (lister, root):
                return list_stored(lister, root, condition)
        except ClusterUnknown as error:
            lost = "no preference for the workers that hold" if url.startswith(HDFS) else "nothing is left out of"
            log.warning("%s %s: %s", lost, table.location, error)
            return f"it cannot be listed here: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, Spark, which reads the table, says it better
            log.info("%s is not listed: %s: %s", table.location, type(error).__name__, error)
            return f"it cannot be listed here: {type(error).__name__}: {error}"


def _does_write(submit: Submit, name: str, table: Table) -> bool:
    written = submit.flow.steps[name].declared.writes
    return written is not None and written.key == table.key


def _find_needed(listing: Listing) -> Needed | None:
    """None where nothing is left out, or where Spark would read fewer folders as other types."""
    folders = tuple(dict.fromkeys(stored.folder for stored in listing.stored))
    # Spark takes the table's columns from what it is shown: with no folder at all there would be none.
    shown = folders or listing.left_out[:1]
    # Types of partition columns are guessed from the folders' names: from fewer, another guess.
    if not listing.left_out or not has_same_types(shown, listing.left_out):
        return None
    return Needed(shown, no_rows=not folders)
