"""What commits are filed under, beside the output: what has to be equal for one to be found by another run.

::

    dated       <output>/2013-01-01/0000000001.json          found by runs of that interval
    the same    <output>/every-9f86d081884c7d65/...          found by runs of every interval, by the fingerprint

A table keeps the interval, where a write adds to it (rows once per interval, or partitions of others beside its own):
one submit a step would write it for each interval. One that is replaced as a whole is the same after any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airflow_dagsched.launch.protocol.manifest import Manifest, StepSpec
from airflow_dagsched.launch.steps.dated import find_dated
from airflow_dagsched.spark.steps.lineage import list_committed_names


@dataclass(frozen=True, slots=True)
class Filing:
    """Of one manifest."""

    interval: str
    undated: Mapping[str, str]
    """Step that is the same for every interval -> its fingerprint."""

    def get_key(self, spec: StepSpec, name: str = "") -> str:
        """What commits of the step's output ``name`` are filed under."""
        # 64 bits of a digest tell one step's fingerprints apart, and paths stay short.
        return f"every-{self.undated[spec.id][:16]}" if self.is_lasting(spec, name) else self.interval

    def is_lasting(self, spec: StepSpec, name: str = "") -> bool:
        """Whether runs of every interval find the output."""
        # See the module: rows once per interval are not the same after two of them.
        added_to = spec.writes is not None and not name and not spec.writes.is_replaced_whole
        return spec.id in self.undated and not added_to

    def list_lasting_places(
        self, spec: StepSpec, output_key: Callable[[StepSpec, str], str]
    ) -> frozenset[tuple[str, str]]:
        """Output and key of all that the step may commit for runs of every interval."""
        names = [name for name in {*list_committed_names(spec), *spec.share} if self.is_lasting(spec, name)]
        return frozenset((output_key(spec, name), self.get_key(spec, name)) for name in names)


def make_filing(manifest: Manifest, fingerprints: Mapping[str, str]) -> Filing:
    """How the manifest's commits are filed."""
    dated = find_dated(manifest.steps)
    undated = {spec.id: fingerprints[spec.id] for spec in manifest.steps if spec.id not in dated}
    return Filing(manifest.interval_key, undated)
