"""Which steps have to run: not those whose committed output still is what they would make.

A step's *fingerprint* covers its code and arguments, its inputs' fingerprints, what its declared reads would
read now, how its table is written, the interval, and the versions of this package and of Spark. A step that
sees the session and does not declare its reads is the same only within one run.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from airflow_dagsched.launch.calls import Output
from airflow_dagsched.launch.manifest import Manifest, Needed, StepSpec
from airflow_dagsched.launch.tables import Table
from airflow_dagsched.spark.lineage import Lineage, committed_names


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


def fingerprints(manifest: Manifest, spark_version: str, generation: Generation) -> Mapping[str, str]:
    """Fingerprint of every step, those of one repeat block as one.

    :param generation: where it raises ``Exception`` the step equals none before it, and it is the step that fails,
        in its turn.
    """
    lineage = Lineage(manifest.steps, manifest.repeats)
    common = (manifest.interval_key, manifest.package_version, spark_version)
    found: dict[str, str] = {}
    for unit in lineage.units:
        specs = [lineage.by_id[step] for step in unit]
        parts = [part for spec in specs for part in _parts(spec, unit, lineage, manifest, generation, found)]
        mine = [repeat for repeat in manifest.repeats if repeat.steps == unit]
        loops = [str((repeat.max_iterations, sorted(repeat.feedback.items()))) for repeat in mine]
        shared = _digest(*common, *parts, *loops)
        found.update({step: _digest(shared, step) if len(unit) > 1 else shared for step in unit})
    return found


def _parts(
    spec: StepSpec,
    unit: tuple[str, ...],
    lineage: Lineage,
    manifest: Manifest,
    generation: Generation,
    found: Mapping[str, str],
) -> list[str]:
    inputs = [f"{each.step}/{each.name}:{found[each.step]}" for each in spec.inputs if each.step not in unit]
    above = [lineage.by_id[up] for up in sorted(lineage.above[spec.id]) if up not in unit]
    reads = [_read(table, spec, above, generation, found) for table in spec.reads or ()]
    run = [manifest.run_id] if spec.takes_session and spec.reads is None else []
    return [spec.code, *inputs, *reads, *run, *_writes(spec.writes)]


def _writes(table: Table | None) -> list[str]:
    """How the table is written. Where is not in it: commits are filed under that."""
    if table is None:
        return []
    return [json.dumps([table.format, table.partition_by, table.mode, sorted(table.options.items())])]


def _read(
    table: Table, reader: StepSpec, above: list[StepSpec], generation: Generation, found: Mapping[str, str]
) -> str:
    """What the read depends on: the steps that write the table before, and what is there now of others."""
    writers = tuple(spec for spec in above if spec.writes and spec.writes.location == table.location)
    made = "".join(found[spec.id] for spec in writers)
    if any(spec.writes and _is_whole(spec.writes) for spec in writers):
        return made
    try:
        return made + generation(table, writers, reader.needed.get(table.key))
    except Exception:  # noqa: BLE001 - whatever it is, the step that reads the table says it better
        return uuid.uuid4().hex


def _is_whole(table: Table) -> bool:
    """Whether a write leaves nothing of others in the table."""
    return table.is_path and table.mode == "overwrite" and not table.partition_by


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()


def select(manifest: Manifest, committed: Callable[[Output], bool], at_hand: Callable[[Output], bool]) -> Selection:
    """Decide from the last step to the first, so that who needs a step's rows is known before the step.

    :param committed: whether the output's newest commit has the step's fingerprint (and is newer than a clear).
    :param at_hand: whether an output of an earlier group can be read.
    """
    lineage = Lineage(manifest.steps, manifest.repeats)
    run: set[str] = set()
    reused: dict[str, str] = {}
    for unit in reversed(lineage.units):
        specs = [lineage.by_id[step] for step in unit]
        if unit[0] not in manifest.targets:
            called = run - lineage.uncalled
            needed = [out for out in lineage.readers if out.step in unit and called & {*lineage.readers[out]}]
            if not all(at_hand(output) for output in needed):
                run.update(unit)
            continue
        reasons = {spec.id: _reason(spec, lineage, run, reused, committed) for spec in specs}
        if all(reasons.values()) or (len(unit) > 1 and _led(specs, lineage, reasons)):
            reused.update({step: reason or "its repeat block is reused" for step, reason in reasons.items()})
        else:
            run.update(unit)
    return Selection(frozenset(run), reused)


def _led(specs: list[StepSpec], lineage: Lineage, reasons: Mapping[str, str]) -> bool:
    """Whether all that leaves a repeat block is reused; what stays inside needs no commit of its own."""
    leaving = [spec.id for spec in specs if lineage.requested(spec.id)]
    return bool(leaving) and all(reasons[step] for step in leaving)


def _reason(
    spec: StepSpec, lineage: Lineage, run: set[str], reused: Mapping[str, str], committed: Callable[[Output], bool]
) -> str:
    """Why the step need not run; empty if it must."""
    names = committed_names(spec)
    readers = lineage.readers_of(spec.id, [name for name in lineage.requested(spec.id) if name not in names])
    if any(reader in run for reader in readers):
        return ""
    if names:
        return "its committed output is still right" if all(committed(Output(spec.id, name)) for name in names) else ""
    if spec.force:
        return ""
    return "all that read it are reused" if readers and all(reader in reused for reader in readers) else ""
