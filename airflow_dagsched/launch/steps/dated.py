"""Which steps are the same whatever interval a run is for.

::

    airports ─> names ─┬─> delays (asks for the interval) ─> worst      airports, names: the same for every interval
                       └─> places                                       places too; delays and worst are dated
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from airflow_dagsched.launch.protocol.manifest import StepSpec


def find_dated(specs: Collection[StepSpec], also: Collection[str] = ()) -> frozenset[str]:
    """Steps that see the run they are in, or read what a step made that does; those of one repeat block together.

    :param also: further steps that are known to.
    """
    found = {spec.id for spec in specs if spec.id in also or _may_see_run(spec)}
    # To the fixed point: through a table a step may depend on one that comes later in the list.
    while more := {spec.id for spec in specs if spec.id not in found and _is_below(spec, specs, found)}:
        found |= more
    return frozenset(found)


def _may_see_run(spec: StepSpec) -> bool:
    return spec.dated or spec.within_run


def _is_below(spec: StepSpec, specs: Collection[StepSpec], dated: Collection[str]) -> bool:
    read = {table.key for table in spec.reads or ()}
    return any(output.step in dated for output in spec.inputs) or any(
        other.id in dated
        and ((spec.repeat and spec.repeat == other.repeat) or (other.writes is not None and other.writes.key in read))
        for other in specs
    )


def find_shared(specs: Collection[StepSpec], dated: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Step -> its outputs that are the same for every interval, while a step that reads them runs for each.

    In the picture above ``names`` for ``delays``; ``airports`` is not needed where ``names`` is there.
    """
    lasting = _find_lasting(specs, dated)
    found = {
        spec.id: {
            output.name
            for reader in specs
            for output in reader.inputs
            if output.step == spec.id and reader.id not in lasting and not (spec.writes is not None and not output.name)
        }
        for spec in specs
        if spec.id not in dated and not spec.repeat
    }
    return {step: tuple(sorted(names)) for step, names in found.items() if names}


def _find_lasting(specs: Collection[StepSpec], dated: Collection[str]) -> frozenset[str]:
    """Steps that run for one interval only: what they leave, or what is made of it, is there for the others."""
    read = {output.step for spec in specs for output in spec.inputs}
    return frozenset(
        spec.id
        for spec in specs
        if spec.id not in dated
        and (spec.writes.is_replaced_whole if spec.writes is not None else bool(spec.store) or spec.id in read)
    )
