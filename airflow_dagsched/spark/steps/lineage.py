"""Who reads what inside one application, and what that means for each dataset.

::

    a ──> b ──> c ──> (table)      a, b: one reader each, handed over lazily: c's write executes all three
    d ──> e                        d: two readers, so it is kept until both have read it
    d ──> f
    g                              g: nobody reads it: it is run for its effect
    h ──> i, h ~~> j               j only waits for h: h has to *end* first, so it is kept too

Words: a step is *awaited* if something needs to know how it ended, not just its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.manifest import Repeat, StepSpec
from airflow_dagsched.launch.steps.pruned import find_uncalled

Mode = Literal["write", "keep", "defer", "lazy", "run"]

RULES_OF_SUCCESS = frozenset({"all_success", "none_failed", "none_failed_min_one_success"})
"""Rules that may go on as soon as the rows above are defined: should those fail after all, it fails with them."""


@dataclass(frozen=True)
class Lineage:
    """The steps that run in this application, in topological order."""

    specs: tuple[StepSpec, ...]
    repeats: tuple[Repeat, ...] = ()
    reused: frozenset[str] = frozenset()
    """Steps that have their turn, but read nothing: their output is there."""

    @cached_property
    def by_id(self) -> Mapping[str, StepSpec]:
        return {spec.id: spec for spec in self.specs}

    @cached_property
    def units(self) -> tuple[tuple[str, ...], ...]:
        """What is scheduled as one: a step, or all steps of a repeat block."""
        return tuple(dict.fromkeys(self.get_unit(spec.id) for spec in self.specs))

    def get_unit(self, step: str) -> tuple[str, ...]:
        """The steps that are scheduled as one with ``step``, itself among them."""
        return self._blocks.get(step, (step,))

    @cached_property
    def _blocks(self) -> Mapping[str, tuple[str, ...]]:
        return {step: repeat.steps for repeat in self.repeats for step in repeat.steps}

    @cached_property
    def readers(self) -> Mapping[Output, tuple[str, ...]]:
        """Steps that read each dataset; those of its own repeat block do not count."""
        # A dict for its order: a set has another in each process.
        found: dict[Output, dict[str, None]] = {}
        for spec in self._running:
            for output in spec.inputs:
                if output.step in self.by_id and spec.id not in self.get_unit(output.step):
                    found.setdefault(output, {})[spec.id] = None
        return {output: tuple(steps) for output, steps in found.items()}

    @cached_property
    def awaited(self) -> frozenset[str]:
        """Steps whose end, and not just their rows, something waits for."""
        return frozenset(
            up for spec in self._running for up in self.list_above(spec) if not self._may_read_lazily(spec, up)
        )

    @cached_property
    def above(self) -> Mapping[str, frozenset[str]]:
        """All steps above each step, however far."""
        found: dict[str, frozenset[str]] = {}
        for spec in self.specs:
            # The specs are in topological order: what is above is there, but for feedback inside a block.
            direct = [up for up in self.list_above(spec) if up in found]
            found[spec.id] = frozenset(direct).union(*(found[up] for up in direct))
        return found

    def list_requested(self, step: str) -> tuple[str, ...]:
        """Names of the outputs that someone reads, or that are committed."""
        spec = self.by_id[step]
        read = [output.name for output in self.readers if output.step == step]
        return tuple(sorted({*read, *list_committed_names(spec)}))

    def list_wanted(self, step: str, returned: Iterable[str]) -> tuple[str, ...]:
        """Outputs something is to be done with; one that nobody asked for is run if none was, for its effect."""
        return self.list_requested(step) or (() if step in self._blocks else tuple(sorted(returned)))

    def list_readers(self, step: str, names: Iterable[str]) -> tuple[str, ...]:
        """Steps that read one of the outputs ``names`` of ``step``, each once."""
        found = [reader for name in sorted(names) for reader in self.readers.get(Output(step, name), ())]
        return tuple(dict.fromkeys(found))

    def choose_mode(self, output: Output, bare_scan: bool) -> Mode:
        """What becomes of a dataset once its plan is known.

        :param bare_scan: the plan only reads columnar files: reading them again, just the columns and rows a
            reader needs, costs less than keeping all of them.
        """
        readers = self.readers.get(output, ())
        spec = self.by_id[output.step]
        if output.name in list_committed_names(spec) or (output.name in spec.share and readers and not bare_scan):
            return "write"
        if not readers:
            return "run"
        # Handed over lazily, the plan of each iteration would hold all those before.
        loops = any(step in self._blocks for step in (output.step, *readers))
        if loops or output.step in self.awaited:
            return "keep"
        # Two readers would execute it twice; of a bare scan that is cheaper than to keep it.
        return "lazy" if len(readers) == 1 or bare_scan else "defer"

    def list_dependencies(self) -> Mapping[tuple[str, ...], frozenset[tuple[str, ...]]]:
        """Unit -> units that come before it."""
        # Steps of a block wait for each other inside it, not for their own unit.
        home = {step: unit for unit in self.units for step in unit}
        return {
            unit: frozenset(home[up] for step in unit for up in self.list_above(self.by_id[step]) if up in home)
            - {unit}
            for unit in self.units
        }

    @cached_property
    def uncalled(self) -> frozenset[str]:
        """Steps with nothing to do that nobody needs."""
        return find_uncalled(spec for spec in self.specs if spec.id not in self.reused)

    @property
    def _running(self) -> list[StepSpec]:
        return [spec for spec in self.specs if spec.id not in self.reused]

    def list_above(self, spec: StepSpec) -> tuple[str, ...]:
        """The steps directly above, by channel or by a plain edge."""
        return tuple(dict.fromkeys((*spec.upstream, *(output.step for output in spec.inputs))))

    def _may_read_lazily(self, spec: StepSpec, up: str) -> bool:
        return spec.rule in RULES_OF_SUCCESS and any(output.step == up for output in spec.inputs)


def list_committed_names(spec: StepSpec) -> frozenset[str]:
    """Outputs of the step that are committed: a table, or datasets. What a table holds is not stored twice."""
    return frozenset({*spec.store, ""} if spec.writes is not None else spec.store)
