"""A group of a dataflow, in one run, as the driver program gets it: manifest and payload.

The manifest holds no argument and no function; those are in the payload, which lives in a private file
until the driver has read it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

import airflow_dagsched
from airflow_dagsched.launch.manifest import ENV_NONCE, Manifest
from airflow_dagsched.provider.payload import pickled
from airflow_dagsched.provider.specs import Parts, Submit


class Paths(Struct, frozen=True):
    """Where one submit keeps its files."""

    folder: str
    events: str
    manifest: str
    payload: str


def paths_in(folder: Path, private: str) -> Paths:
    """``private`` is a folder that nobody else may read."""
    return Paths(
        str(folder), str(folder / "events.jsonl"), str(folder / "manifest.json"), str(Path(private, "payload"))
    )


class Shipment(Struct, frozen=True):
    """What one submit needs."""

    manifest: Manifest
    payload: bytes


def ship(submit: Submit, parts: Parts, group: str, paths: Paths, *, slots: int) -> Shipment:
    """Manifest and payload of ``submit``, whose steps are ``parts``, itself a part of ``group``.

    Raises :class:`InvalidInput` for a step whose arguments cannot be shipped.
    """
    flow, facts = submit.flow, submit.facts
    manifest = Manifest(
        package_version=airflow_dagsched.__version__,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        dag_id=facts.dag_id,
        dataflow=str(flow.group_id),
        group=group,
        run_id=facts.run_id,
        try_number=facts.try_number,
        clear_number=facts.clear_number,
        work_dir=flow.work_dir,
        events=paths.events,
        payload=paths.payload,
        interval_key=facts.interval.key,
        interval_start=_iso(facts.interval.start),
        interval_end=_iso(facts.interval.end),
        context=dict(facts.context),
        datasets=dict(submit.datasets),
        targets=submit.targets,
        steps=parts.specs,
        repeats=parts.repeats,
        slots=slots,
        lease_s=flow.lease_s,
        launcher_pid=os.getpid(),
    )
    return Shipment(manifest, pickled(manifest, parts.calls, submit.roots))


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def write_private(path: str, content: bytes) -> None:
    """Write a file only this user can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def driver_environment(nonce: str, roots: Sequence[Path]) -> dict[str, str]:
    """Environment of the driver program: this Python, this package, the DAG bundle's modules."""
    package = str(Path(__file__).parents[2])
    paths = [package, *map(str, roots), os.environ.get("PYTHONPATH", "")]
    python = {name: os.environ.get(name, sys.executable) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    return {ENV_NONCE: nonce, "PYTHONPATH": os.pathsep.join(path for path in paths if path), **python}
