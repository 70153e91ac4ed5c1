"""Ends of steps that leave no rows behind: recorded, so that a retry does not run them again.

::

    <work_dir>/ends/<dag/dataflow/step>/<run>/00000-00001-9f86d081884c7d65.json     one a try of a group

    function called ── its actions ended ── record ── event ── mirror green
                                        └── a driver that is killed here has the step run again

What a step did beside rows belongs to its run: other runs, and this one after a clear of the step, run it again.
Needs no Spark.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.keys import digest_parts, escape_key
from airflow_dagsched.launch.protocol.manifest import Manifest, StepSpec
from airflow_dagsched.launch.protocol.wire import encode_plain, parse_dataclass
from airflow_dagsched.spark.files.store import Store, join_path

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class End:
    """A step that ended well, in one try of one run."""

    step: str
    run_id: str
    try_id: TryId
    fingerprint: str
    value: Any = None
    """The plain value it returned, without secrets."""
    whole: bool = True
    """Whether ``value`` is what was returned: nothing in it had to be masked."""
    rows: int | None = None
    """Of a DataFrame that nobody reads, and that was executed for its effect."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    group: str = ""
    """Whose launch task ran it: tries of two have no order."""

    def can_serve(self, outputs: tuple[str, ...]) -> bool:
        """Whether who wants ``outputs`` of the step gets them from here: none, or its plain value."""
        return not outputs or (outputs == ("",) and self.value is not None and self.whole)


class Ends:
    """The records of one run.

    :param mask: takes the secrets out of a value.
    """

    def __init__(self, store: Store, manifest: Manifest, mask: Callable[[Any], Any]) -> None:
        self._store = store
        self._manifest = manifest
        self._mask = mask

    def record_end(
        self, step: str, fingerprint: str, value: Any, rows: int | None, metrics: Mapping[str, float]
    ) -> None:
        """The step has ended well. A record that cannot be written costs a repeat, if there is another try."""
        # A value with a secret in it is stored with stars, so it cannot be given to a reader: ``whole`` says that.
        masked, run = self._mask(value), self._manifest
        end = End(step, run.run_id, run.try_id, fingerprint, masked, masked == value, rows, metrics, run.group)
        try:
            self._store.write_text(
                join_path(self._get_folder(step), _make_name(run.try_id, run.group)),
                json.dumps(encode_plain(end), sort_keys=True),
            )
        except OSError as error:
            log.warning("the end of step %s is not recorded, a retry would run it again: %s", step, error)

    def find_latest(self, spec: StepSpec, fingerprint: str = "") -> End | None:
        """The newest end of the step in this run; none that is older than the clear that has it run again.

        Where several launch tasks ran it since the same clear, one with ``fingerprint`` goes first.
        """
        run, folder = self._manifest.try_id, self._get_folder(spec.id)
        found = [end for name in self._list_names(folder) if (end := self._read_end(join_path(folder, name)))]
        # A run that was deleted and made again has the id of the old one.
        mine = [end for end in found if end.try_id.incarnation == run.incarnation]
        newest = {end.group: end for end in sorted(mine, key=lambda end: end.try_id)}.values()
        end = max(
            newest, key=lambda end: (end.try_id.clear_number, end.fingerprint == fingerprint, end.try_id), default=None
        )
        return None if end is None or (spec.force and end.try_id.clear_number < run.clear_number) else end

    def _read_end(self, path: str) -> End | None:
        """None for a record that cannot be read, as one that its writer died in: then the step runs again."""
        try:
            return parse_dataclass(End, self._store.read_text(path))
        except FileNotFoundError:
            return None

    def _list_names(self, folder: str) -> list[str]:
        return [entry.name for entry in self._store.list(folder) if not entry.is_folder]

    def _get_folder(self, step: str) -> str:
        run = self._manifest
        return join_path(
            run.work_dir, "ends", escape_key(f"{run.dag_id}/{run.dataflow}/{step}"), escape_key(run.run_id)
        )


def _make_name(each: TryId, group: str) -> str:
    # One writer a name: tries of one launch task never write the same file, and another one that runs the step has
    # tries of the same numbers.
    return f"{each.clear_number:05d}-{each.try_number:05d}-{digest_parts(each.incarnation, group)}.json"
