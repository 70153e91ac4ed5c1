"""The run manifest: all the driver program needs to run one group, but no secret.

Functions and rendered arguments travel beside it in the *payload*, a private file the driver removes as
soon as it has read it, because an argument may be a JDBC URL with a password in it. So may a context value or
a table's option: the payload has the manifest as it is, the file everybody may read has it masked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_dagsched.launch.calls import Output
from airflow_dagsched.launch.masking import Masking
from airflow_dagsched.launch.tables import Table
from airflow_dagsched.launch.wire import decode, encode

MANIFEST_VERSION = 1
PAYLOAD_KEY = ":manifest"
"""Of the manifest among the calls of the payload."""
ENV_NONCE = "DAGSCHED_NONCE"
"""Environment variable with the nonce of this try: a line without it is no event of ours."""


@dataclass(frozen=True, slots=True)
class Needed:
    """What is read of a table by path: the partitions in ``folders``, relative to it, and no others."""

    folders: tuple[str, ...]
    no_rows: bool = False
    """Nothing: then a folder is there for its columns alone."""


@dataclass(frozen=True, slots=True)
class StepSpec:
    """One step of the dataflow as the driver sees it. Order in the manifest is topological."""

    id: str
    code: str
    """Fingerprint of function, closure, imported bundle modules and rendered arguments."""
    inputs: tuple[Output, ...] = ()
    """Datasets it reads over channels."""
    upstream: tuple[str, ...] = ()
    """All steps directly above it: by channel or by a plain edge."""
    outside: Mapping[str, str] = field(default_factory=dict)
    """Final Airflow state of each ordinary task directly above it."""
    skipped_by: str = ""
    """The branch or short circuit that skipped this step; empty if none did."""
    rule: str = "all_success"
    reads: tuple[Table, ...] | None = None
    """Declared reads; None: undeclared, then results are reused only within one run."""
    needed: Mapping[str, Needed] = field(default_factory=dict)
    """Declared read, by its place -> what is read of it; of others, everything."""
    pruned: str = ""
    """Why it has nothing to do; empty: it runs."""
    takes_session: bool = True
    """Whether the function asks for ``spark``: without it and without reads a step sees its inputs alone."""
    writes: Table | None = None
    store: tuple[str, ...] = ()
    """Outputs that must be committed as datasets: a reader is outside this application."""
    works_without_input: bool = True
    force: bool = False
    """Run even if a commit matches: a person cleared this step."""
    repeat: str = ""
    """Id of the repeat block the step belongs to; empty for none."""
    location: tuple[str, int, int] | None = None
    """Source file, first and last line of the function: attributes an exception to its step."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop of steps, one composite step: they run in order until ``until`` says so."""

    id: str
    steps: tuple[str, ...]
    max_iterations: int
    feedback: Mapping[str, str] = field(default_factory=dict)
    """Parameter ``"step.parameter"`` -> step whose last output it gets from the second iteration on."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One submit. Paths are under ``work_dir``, local or any Hadoop file system."""

    package_version: str
    python: str
    """``major.minor`` of the interpreter that pickled the payload."""
    dag_id: str
    dataflow: str
    group: str
    run_id: str
    try_number: int
    clear_number: int
    work_dir: str
    events: str
    """Path of the event file."""
    payload: str
    """Path of the private file with functions and arguments; the driver removes it."""
    interval_key: str
    targets: tuple[str, ...]
    """Steps of this group; the others in ``steps`` are above them and run only if their data is gone."""
    steps: tuple[StepSpec, ...]
    interval_start: str | None = None
    interval_end: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    """JSON values a step may ask for by name."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """``step/output`` -> path of the committed dataset this run made or reused in an earlier group."""
    repeats: tuple[Repeat, ...] = ()
    slots: int = 2
    """Steps side by side."""
    lease_s: float = 60.0
    launcher_pid: int | None = None
    """Process that launched the driver on the same host; when it is gone the driver stops."""
    mode: Literal["planned", "per_step"] = "planned"
    version: int = MANIFEST_VERSION

    def to_json(self) -> str:
        return json.dumps(encode(self), sort_keys=True, indent=1)

    def masked(self) -> str:
        """As JSON, without the secrets in it."""
        raw, masking = encode(self), Masking()
        shown = {name: raw[name] for name in ("context", "steps")}
        masking.learn(shown)
        return json.dumps({**raw, **masking.value(shown)}, sort_keys=True, indent=1)


def read_manifest(text: str, package_version: str) -> Manifest:
    """Parse ``text``; raises ``ValueError`` that says which side is older when versions differ."""
    raw = json.loads(text)
    found = (raw.get("version"), raw.get("package_version"))
    if found != (MANIFEST_VERSION, package_version):
        raise ValueError(
            f"the manifest is of airflow_dagsched {found[1]} (format {found[0]}), the driver program of "
            f"{package_version} (format {MANIFEST_VERSION}): install the same version on both sides"
        )
    return decode(Manifest, raw)
