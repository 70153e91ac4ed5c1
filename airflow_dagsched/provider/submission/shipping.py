"""A group of a dataflow, in one run, as the driver program gets it: manifest and payload.

The manifest holds no argument and no function; those are in the payload, which lives in a private file
until the driver has read it.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from airflow_dagsched.launch.protocol.manifest import (
    ENV_MANIFEST_SHA256,
    ENV_NONCE,
    ENV_PAYLOAD,
    ENV_PAYLOAD_SHA256,
    Manifest,
    hash_content,
)
from airflow_dagsched.launch.secrecy.masked_manifest import mask_manifest
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.provider.submission.payload import join_payload, pickle_calls
from airflow_dagsched.provider.submission.specs import Parts, Submit
from airflow_dagsched.version import __version__


class Paths(Struct, frozen=True):
    """Where one submit keeps its files."""

    folder: Path
    """In the work folder: for everybody to read."""
    private: Path
    """Gone when the submit has ended; nobody else may open it."""

    @property
    def events(self) -> Path:
        """File that the driver program writes its events to."""
        return self.folder / "events.jsonl"

    @property
    def manifest(self) -> Path:
        """File that the driver program is called with."""
        return self.folder / "manifest.json"

    @property
    def payload(self) -> Path:
        """File with functions and arguments."""
        return self.private / "payload"


class Shipment(Struct, frozen=True):
    """What one submit needs."""

    manifest: Manifest
    calls: Mapping[str, bytes]
    """Pickled, by step."""
    masking: Masking
    """Knows the secrets in all of it."""

    def pack(self) -> Packed:
        """The files' contents."""
        shown = mask_manifest(self.manifest, self.masking)
        return Packed(join_payload(self.manifest, self.calls, self.masking.known), shown)


class Packed(Struct, frozen=True):
    """A shipment as it is stored."""

    payload: bytes
    shown: str
    """The manifest for everybody to read."""


def build_shipment(submit: Submit, parts: Parts, group: str, paths: Paths, masking: Masking | None = None) -> Shipment:
    """Manifest and calls of ``submit``, whose steps are ``parts``, itself a part of ``group``.

    :param masking: with the secrets known so far; those in what is shipped are added.
    Raises :class:`InvalidInput` for a step whose arguments cannot be shipped.
    """
    flow, facts = submit.flow, submit.facts
    manifest = Manifest(
        package_version=__version__,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        dag_id=facts.dag_id,
        dataflow=flow.name,
        group=group,
        run_id=facts.run_id,
        try_number=facts.try_id.try_number,
        clear_number=facts.try_id.clear_number,
        incarnation=facts.try_id.incarnation,
        work_dir=flow.work_dir,
        events=str(paths.events),
        interval_key=facts.interval.key,
        interval_start=_format_iso(facts.interval.start),
        interval_end=_format_iso(facts.interval.end),
        context=dict(facts.context),
        datasets=dict(submit.datasets),
        targets=submit.targets,
        steps=parts.specs,
        repeats=parts.repeats,
        lease_s=flow.lease_s,
        stall_s=flow.stall_s,
        keep_columns=flow.keep_columns,
        launcher_pid=os.getpid(),  # without its launch the driver program ends, too
    )
    masking = masking or Masking()
    # Before the manifest is shown: a secret that is an argument may also be part of a path in it.
    masking.learn([[call.args, call.kwargs, call.sql] for call in parts.calls.values()])
    return Shipment(manifest, pickle_calls(facts.dag_id, parts.calls, submit.roots), masking)


def add_plan(shipment: Shipment, group: Group, session: Mapping[str, Mapping[str, str]]) -> Shipment:
    """The shipment with what the plan says of the group's inside: which step is next, and beside what.

    :param session: step -> SQL settings of its session.
    """
    instances = Counter(step for box in group.containers for step, _ in box.instances)
    manifest = replace(
        shipment.manifest,
        slots=group.slots,
        order=group.steps,
        begins=group.begins,
        instances=dict(instances),
        cores=sum(box.cores for box in group.containers),
        session=session,
    )
    return Shipment(manifest, shipment.calls, shipment.masking)


def _format_iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def store_shipment(packed: Packed, paths: Paths) -> None:
    """Write the files that the driver program reads."""
    write_file(paths.manifest, packed.shown.encode(), 0o644)
    # Arguments may be secrets; the manifest holds none, and people look at it.
    write_file(paths.payload, packed.payload, 0o600)


def build_driver_environment(nonce: str, roots: Sequence[Path], packed: Packed, paths: Paths) -> dict[str, str]:
    """Environment of the driver program: this Python, this package, the DAG bundle's modules; and what it has to find
    in the files, which others may have changed.
    """
    return {
        ENV_NONCE: nonce,
        ENV_MANIFEST_SHA256: hash_content(packed.shown.encode()),
        ENV_PAYLOAD: str(paths.payload),
        ENV_PAYLOAD_SHA256: hash_content(packed.payload),
        **build_python_environment(roots),
    }


def build_python_environment(roots: Sequence[Path]) -> dict[str, str]:
    """This Python, this package, the DAG bundle's modules."""
    package = str(Path(__file__).parents[3])
    # This very package: a driver of another version refuses the manifest.
    modules = [package, *map(str, roots), os.environ.get("PYTHONPATH", "")]
    # Executors unpickle what this Python has pickled: another minor version cannot. The author's word counts, though.
    python = {name: os.environ.get(name, sys.executable) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    return {"PYTHONPATH": os.pathsep.join(path for path in modules if path), **python}
