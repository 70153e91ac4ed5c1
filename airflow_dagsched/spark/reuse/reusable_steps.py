"""Which steps have to run: not those whose committed output still is what they would make.

A step's *fingerprint* covers its code, arguments and settings, its inputs' fingerprints, what its declared reads would
read now, how its table is written, and the versions of this package and of Spark; the interval unless it is proven that
the step cannot see it: it asks for nothing dated, reads nothing by the interval, and its code or text has nothing in it
that may be another at another time. (A rendered template counts by its value, and what is below by its inputs.) A step
that may read what nobody declared is the same only within one run, and one of the same id that was made after this was
deleted is another.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.manifest import Manifest, Needed, StepSpec
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.spark.reuse.ends import End
from airflow_dagsched.spark.steps.lineage import Lineage, list_committed_names


@dataclass(frozen=True, slots=True)
class Selection:
    """What becomes of each step: it runs, it is reused, or it is not needed (in neither)."""

    run: frozenset[str]
    reused: Mapping[str, str] = field(default_factory=dict)
    """Target -> why it need not run."""


Generation = Callable[[Table, tuple[StepSpec, ...], Needed | None], str]
"""Digest of what a declared read would read now, but for what these steps, which write the table before, wrote; of no
more than is needed.
"""


def compute_fingerprints(manifest: Manifest, spark_version: str, generation: Generation) -> Mapping[str, str]:
    """Fingerprint of every step, those of one repeat block as one.

    :param generation: where it raises ``Exception`` the step equals none before it, and it is the step that fails,
        in its turn.
    """
    lineage = Lineage(manifest.steps, manifest.repeats)
    common = (manifest.package_version, spark_version)
    found: dict[str, str] = {}
    for unit in lineage.units:
        specs = [lineage.by_id[step] for step in unit]
        parts = [part for spec in specs for part in _list_parts(spec, unit, lineage, manifest, generation, found)]
        mine = [repeat for repeat in manifest.repeats if repeat.steps == unit]
        loops = [str((repeat.max_iterations, sorted(repeat.feedback.items()))) for repeat in mine]
        shared = _hash_parts(*common, *parts, *loops)
        # Steps of a block end together, with one fingerprint for all they depend on; only their names differ.
        found.update({step: _hash_parts(shared, step) if len(unit) > 1 else shared for step in unit})
    return found


def _list_parts(
    spec: StepSpec,
    unit: tuple[str, ...],
    lineage: Lineage,
    manifest: Manifest,
    generation: Generation,
    found: Mapping[str, str],
) -> list[str]:
    inputs = [f"{each.step}/{each.name}:{found[each.step]}" for each in spec.inputs if each.step not in unit]
    # By name: a set has another order in each process, a fingerprint must not.
    above = [lineage.by_id[up] for up in sorted(lineage.above[spec.id]) if up not in unit]
    reads = [_describe_read(table, spec, above, generation, found) for table in spec.reads or ()]
    run = [manifest.run_id, manifest.incarnation] if spec.within_run else []
    interval = [manifest.interval_key] if spec.dated else []
    return [spec.code, *inputs, *reads, *run, *interval, *_describe_write(spec.writes)]


def _describe_write(table: Table | None) -> list[str]:
    """How the table is written. Where is not in it: commits are filed under that."""
    if table is None:
        return []
    return [json.dumps([table.format, table.partition_by, table.mode, sorted(table.options.items())])]


def _describe_read(
    table: Table, reader: StepSpec, above: list[StepSpec], generation: Generation, found: Mapping[str, str]
) -> str:
    """What the read depends on: the steps that write the table before, and what is there now of others."""
    writers = tuple(spec for spec in above if spec.writes and spec.writes.location == table.location)
    needed = reader.needed.get(table.key)
    made = "".join([*(found[spec.id] for spec in writers), *([f"{needed.folders} {needed.no_rows}"] if needed else [])])
    # What is there now is about to be replaced, all of it.
    if any(spec.writes and _is_whole(spec.writes) for spec in writers):
        return made
    try:
        return made + generation(table, writers, needed)
    except Exception:  # noqa: BLE001 - whatever it is, the step that reads the table says it better
        return uuid.uuid4().hex


def _is_whole(table: Table) -> bool:
    """Whether a write leaves nothing of others in the table."""
    return table.is_path and table.mode == "overwrite" and not table.partition_by


def _hash_parts(*parts: str) -> str:
    # A separator that is in none of the parts: ("ab", "c") is not ("a", "bc").
    return sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of earlier applications."""

    committed: Callable[[Output], bool]
    """Whether the output's newest commit has the step's fingerprint (and is newer than a clear)."""
    at_hand: Callable[[Output], bool]
    """Whether an output of an earlier group can be read."""
    end: Callable[[str], End | None]
    """How a step without rows ended in this run, with its fingerprint (and after a clear)."""


def select_steps(
    manifest: Manifest,
    known: Known,
    over: frozenset[str] = frozenset(),
) -> Selection:
    """Decide what runs.

    :param over: steps whose table is about to be written over by one above them.
    """
    lineage = Lineage(manifest.steps, manifest.repeats)
    still = replace(known, committed=lambda output: output.step not in over and known.committed(output))
    selection = _select_units(manifest, lineage, still)
    more = frozenset(step for step in selection.reused if _is_written_over(step, lineage, selection.run))
    # Ends: each time more steps are counted out, and what runs only grows.
    return select_steps(manifest, known, over | more) if more else selection


def _is_written_over(step: str, lineage: Lineage, run: frozenset[str]) -> bool:
    """Whether a step above that runs writes the same table, so that the later rows have to come after it again."""
    mine = lineage.by_id[step].writes
    tables = [lineage.by_id[up].writes for up in lineage.above[step] & run] if mine is not None else []
    return any(
        each is not None and mine is not None and each.key == mine.key and "overwrite" in (each.mode, mine.mode)
        for each in tables
    )


def _select_units(manifest: Manifest, lineage: Lineage, known: Known) -> Selection:
    """From the last step to the first, so that who needs a step's rows is known before the step."""
    run: set[str] = set()
    reused: dict[str, str] = {}
    for unit in reversed(lineage.units):
        specs = [lineage.by_id[step] for step in unit]
        if unit[0] not in manifest.targets:
            # Who runs but is not called reads nothing.
            called = run - lineage.uncalled
            needed = [out for out in lineage.readers if out.step in unit and called & {*lineage.readers[out]}]
            if not all(known.at_hand(output) for output in needed):
                run.update(unit)
            continue
        reasons = {spec.id: _find_reason(spec, lineage, run, reused, known) for spec in specs}
        if all(reasons.values()) or (len(unit) > 1 and _is_led(specs, lineage, reasons)):
            reused.update({step: reason or "its repeat block is reused" for step, reason in reasons.items()})
        else:
            run.update(unit)
    return Selection(frozenset(run), reused)


def _is_led(specs: list[StepSpec], lineage: Lineage, reasons: Mapping[str, str]) -> bool:
    """Whether all that leaves a repeat block is reused; what stays inside needs no commit of its own."""
    leaving = [spec.id for spec in specs if lineage.list_requested(spec.id)]
    return bool(leaving) and all(reasons[step] for step in leaving)


def _find_reason(spec: StepSpec, lineage: Lineage, run: set[str], reused: Mapping[str, str], known: Known) -> str:
    """Why the step need not run; empty if it must."""
    names, requested, end = list_committed_names(spec), lineage.list_requested(spec.id), known.end(spec.id)
    if end is not None and end.can_serve(requested):
        return "it ended well in this run"
    passed_on = [name for name in requested if name not in names]
    readers = lineage.list_readers(spec.id, passed_on)
    shared = passed_on and {*passed_on} <= {*spec.share} and all(known.committed(Output(spec.id, n)) for n in passed_on)
    # Rows that were only handed over went with their application.
    if not shared and any(reader in run for reader in readers):
        return ""
    if names:
        right = all(known.committed(Output(spec.id, name)) for name in names)
        return "its committed output is still right" if right else ""
    if shared:
        return "the same for every interval, and another run has made it"
    # Somebody cleared it: it runs, needed or not.
    if spec.force and end is None:
        return ""
    return "all that read it are reused" if readers and all(reader in reused for reader in readers) else ""
