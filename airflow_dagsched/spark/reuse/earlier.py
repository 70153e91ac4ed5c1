"""What earlier applications made of the steps of this one: commits that are still right, ends, rows to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.manifest import Manifest
from airflow_dagsched.spark.outputs.commits import CommitLog, Committed
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.outputs.schemas import has_schema, read_schema, read_whole
from airflow_dagsched.spark.reuse.ends import End, Ends
from airflow_dagsched.spark.reuse.filing import Filing


class Earlier:
    """Asks the records about the steps of one manifest.

    :param whole: datasets of which more is asked for than is stored, as this application has found.
    """

    def __init__(
        self,
        manifest: Manifest,
        log: CommitLog,
        ends: Ends,
        outputs: Outputs,
        fingerprints: Mapping[str, str],
        filing: Filing,
        *,
        whole: frozenset[Output] = frozenset(),
    ) -> None:
        self._manifest = manifest
        self._specs = {spec.id: spec for spec in manifest.steps}
        self._log = log
        self._ends = ends
        self._outputs = outputs
        self._fingerprints = fingerprints
        self._filing = filing
        self._whole = whole
        self.too_narrow: dict[Output, Committed] = {}
        """Datasets that would serve, had they all columns and rows that may be read."""
        self._read: dict[Output, Committed] = {}

    def find_commit(self, output: Output) -> Committed | None:
        """The newest commit, if it is what the step would make now and its data is there."""
        spec = self._specs[output.step]
        key, writer = self._outputs.get_output_key(spec, output.name), self._outputs.name_writer(spec)
        found = self._log.find_latest(key, self._filing.get_key(spec, output.name), writer)
        if found is None or found.fingerprint != self._fingerprints[spec.id]:
            return None
        if spec.force and not self._is_since_clear(found):
            return None
        if not self._has_enough(output, found):
            return None
        # Last, for it lists the table.
        return found if self._outputs.holds(found) else None

    def find_record(self, output: Output) -> Committed | None:
        """The record of the rows that ``read`` gave; None where it gave a value, or there is none."""
        return self._read.get(output)

    def _has_enough(self, output: Output, found: Committed) -> bool:
        """Whether the dataset has all columns and rows that may be read of it, as far as it is known."""
        if not found.whole or not has_schema(found):
            return True
        spec = self._specs[output.step]
        right = output not in self._whole and found.way == spec.way
        if right and output.step in self._manifest.targets:
            # Made now it might have more: what others learnt since counts.
            names, stored = {*read_whole(found).names}, {*read_schema(found).names}
            wanted = names & {*spec.narrow.get(output.name, names)}
            right = wanted <= stored and {*found.where} <= {*spec.where.get(output.name, ())}
        if not right:
            self.too_narrow[output] = found
        return right

    def is_right(self, output: Output) -> bool:
        """Whether the step need not run for ``output``.

        A table that is replaced as a whole, and that another run wrote, must hold nothing else: what steps below
        added to it for another interval would have gone when it was written for ours.
        """
        found = self.find_commit(output)
        if found is None or found.table is None or self._is_of_run(found):
            return found is not None
        return not self._filing.is_lasting(self._specs[output.step], output.name) or self._outputs.holds_alone(found)

    def find_end(self, step: str) -> End | None:
        """How the step ended in this run, if it left no rows and would do the same now."""
        found = self._ends.find_latest(self._specs[step], self._fingerprints[step])
        return found if found is not None and found.fingerprint == self._fingerprints[step] else None

    def _is_since_clear(self, found: Committed) -> bool:
        """Whether an earlier try made it after the step was cleared: then a retry reuses it all the same."""
        # A retry after a clear has the same number: what the try before it made is since that clear.
        return self._is_of_run(found) and found.try_id.clear_number == self._manifest.clear_number

    def _is_of_run(self, found: Committed) -> bool:
        run = self._manifest
        return (found.run_id, found.try_id.incarnation) == (run.run_id, run.incarnation)

    def is_at_hand(self, output: Output) -> bool:
        """Whether rows, or the plain value, of an earlier group's step can be read."""
        return (
            self._find_known(output) is not None
            or self.find_commit(output) is not None
            or self._find_value(output) is not None
        )

    def read(self, output: Output, session: SparkSession) -> Any:
        """The rows, at the path this run knows, else of the right commit; or the plain value."""
        known = self._find_known(output)
        path, committed = known if known is not None else ("", self.find_commit(output))
        if path and committed is None:
            return self._outputs.read_path(path, session)
        if committed is not None:
            self._read[output] = committed
            return self._outputs.read(committed, session)
        end = self._find_value(output)
        assert end is not None, f"{output}: neither here nor recorded"
        return end.value

    def _find_value(self, output: Output) -> End | None:
        """Where the step ended with a plain value, in this run: like a path, what this run knows stays."""
        end = self._ends.find_latest(self._specs[output.step])
        return end if end is not None and end.can_serve((output.name,)) else None

    def _find_known(self, output: Output) -> tuple[str, Committed | None] | None:
        """The path this run knows, if what is there serves, with its record (None: it has none)."""
        path = self._manifest.datasets.get(output.key)
        table = self._specs[output.step].writes is not None and not output.name
        if not path or table:
            return None
        found = self._outputs.find_record(path)
        if found is None:
            serves = self._outputs.holds_path(path)
        else:
            serves = self._has_enough(output, found) and self._outputs.holds(found)
        return (path, found) if serves else None
