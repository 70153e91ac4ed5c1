"""The run manifest: all the driver program needs to run one group, but no secret.

Functions and rendered arguments travel beside it in the *payload*, a private file the driver removes as
soon as it has read it, because an argument may be a JDBC URL with a password in it. So may a context value or
a table's option: the payload has the manifest as it is, the file everybody may read has it masked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.tables import Table
from airflow_dagsched.launch.protocol.wire import decode_dataclass, encode_plain, load_json

T = TypeVar("T")
MANIFEST_VERSION = 1
PAYLOAD_KEY = ":manifest"
"""Of the manifest among the calls of the payload."""
SECRETS_KEY = ":secrets"
"""Of the secrets to mask, as JSON."""
ENV_MANIFEST_SHA256 = "DAGSCHED_MANIFEST_SHA256"
ENV_PAYLOAD = "DAGSCHED_PAYLOAD"
"""Environment variable with the path of the private file with functions and arguments; the driver removes it.

Nobody else can change the environment of a process: whoever may write the work folder can change what is there, but not
make the driver load it.
"""
ENV_PAYLOAD_SHA256 = "DAGSCHED_PAYLOAD_SHA256"
ENV_PROPERTIES = "DAGSCHED_PROPERTIES"
"""Environment variable with the path of the file with Spark's settings, which the driver removes, too."""
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
    """Fingerprint of function, closure, imported bundle modules, rendered arguments and settings."""
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
    """Declared reads; None: undeclared."""
    needed: Mapping[str, Needed] = field(default_factory=dict)
    """Declared read, by its place -> what is read of it; of others, everything."""
    pruned: str = ""
    """Why it has nothing to do; empty: it runs."""
    dated: bool = True
    """Whether it asks for something of its run by name, declares reads by the interval, or may see the clock, the
    environment or anything else that is another in another run.
    """
    within_run: bool = True
    """Whether it may read what nobody declared: then its results are reused only within its run."""
    writes: Table | None = None
    store: tuple[str, ...] = ()
    """Outputs that must be committed as datasets: a reader is outside this application."""
    share: tuple[str, ...] = ()
    """Outputs worth committing although all that read them are in this application: other runs need them too."""
    works_without_input: bool = True
    force: bool = False
    """Run even if a commit matches: a person cleared this step."""
    repeat: str = ""
    """Id of the repeat block the step belongs to; empty for none."""
    location: tuple[str, int, int] | None = None
    """Source file, first and last line of the function: attributes an exception to its step."""
    routed: Mapping[str, Literal["broadcast", "single"]] = field(default_factory=dict)
    """``step/output`` of an input -> how its rows are handed over, where its author says so; no row depends on it."""
    way: str = ""
    """Digest of the code of all steps above it, of its own, of all below it: they say which columns are read."""
    narrow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Output that is stored -> the columns that were read of it when the same code last ran; of others all are."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Output that is stored -> what all its readers have asked of each row in all runs of the same code, as SQL."""


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
    interval_key: str
    targets: tuple[str, ...]
    """Steps of this group; the others in ``steps`` are above them and run only if their data is gone."""
    steps: tuple[StepSpec, ...]
    incarnation: str = ""
    """See ``TryId``."""
    interval_start: str | None = None
    interval_end: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    """JSON values a step may ask for by name."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """``step/output`` -> path of the committed dataset this run made or reused in an earlier group."""
    repeats: tuple[Repeat, ...] = ()
    slots: int = 2
    """Steps side by side."""
    order: tuple[str, ...] = ()
    """The plan's list, in whose order steps begin as their inputs are there; those that are not in it come first."""
    begins: Mapping[str, float] = field(default_factory=dict)
    """Step -> when the plan has it begin: seconds since the first did."""
    instances: Mapping[str, int] = field(default_factory=dict)
    """Step -> tasks that the plan has at once, as far as there are cores; 1 of others."""
    cores: int = 0
    """Of all executors, as planned; 0: nothing is planned, and nobody waits for a core."""
    session: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Step -> Spark SQL settings of its session: how parallel its scans and shuffles are."""
    lease_s: float = 60.0
    stall_s: float = 300.0
    """Seconds without progress after which a step's log says what it waits for; 0: never."""
    launcher_pid: int | None = None
    """Process that launched the driver on the same host; when it is gone the driver stops."""
    keep_columns: Literal["used", "all"] = "used"
    """Of datasets with several readers."""
    mode: Literal["planned", "per_step"] = "planned"
    version: int = MANIFEST_VERSION

    @property
    def try_id(self) -> TryId:
        """The try that this submit is of."""
        return TryId(self.incarnation, self.clear_number, self.try_number)

    def to_json(self) -> str:
        """All of it, secrets included: for the payload alone."""
        return json.dumps(encode_plain(self), sort_keys=True, indent=1)


def hash_content(content: bytes) -> str:
    """The sha256 of a file's content, as the environment variables have it."""
    return hashlib.sha256(content).hexdigest()


def read_manifest(text: str, package_version: str) -> Manifest:
    """Parse ``text``, which is known by its digest. Raises as ``decode_manifest``."""
    return decode_manifest(Manifest, text, MANIFEST_VERSION, package_version, "manifest")


def decode_manifest(kind: type[T], text: str, version: int, package_version: str, what: str) -> T:
    """The manifest in ``text``; raises ``ValueError`` that says which side is older when versions differ.

    :param version: of its format.
    :param what: it is, for the error.
    """
    raw = load_json(text)
    if not isinstance(raw, Mapping):
        raise ValueError(f"this is no {what}")
    # Before any other field is looked at: to another version they may mean something else.
    found = (raw.get("version"), raw.get("package_version"))
    if found != (version, package_version):
        raise ValueError(
            f"the manifest is of airflow_dagsched {found[1]} (format {found[0]}), the driver program of "
            f"{package_version} (format {version}): install the same version on both sides"
        )
    try:
        return decode_dataclass(kind, raw)
    except (TypeError, AttributeError, LookupError) as error:
        raise ValueError(f"this is no {what}: {error}") from None
