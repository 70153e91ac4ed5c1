"""Runs of steps through real relays and real hosts, as launch tasks start them but without Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cloudpickle

from airflow_dagsched.launch.protocol.events import Event, Finished, Started, StepDone, StepLog, decode_batch
from airflow_dagsched.launch.protocol.manifest import (
    ENV_MANIFEST_SHA256,
    ENV_NONCE,
    ENV_PAYLOAD,
    ENV_PAYLOAD_SHA256,
    PAYLOAD_KEY,
    SECRETS_KEY,
    hash_content,
)
from airflow_dagsched.launch.warm.messages import Status
from airflow_dagsched.launch.warm.terms import Terms
from airflow_dagsched.process_names import name_process, read_beginning
from airflow_dagsched.provider.warm.applications import Application, ask_status, list_applications, tell_end
from airflow_dagsched.provider.warm.offer import HOST, RETAINED, Offer, build_request, store_request
from tests.spark.running import Flow, manifest_of

SPARK_SUBMIT = str(Path(sys.executable).with_name("spark-submit"))
SETTINGS = {
    **RETAINED,
    "spark.ui.enabled": "false",
    "spark.driver.memory": "700m",
    "spark.sql.shuffle.partitions": "2",
}
LONG_S = 400.0
NONCE = "n0nce"


@dataclass
class Served:
    """One run that has ended."""

    code: int
    output: str
    batches: list[tuple[Event, ...]]

    @property
    def events(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]

    @property
    def number(self) -> int | None:
        """Which run of its application it was."""
        return next((each.warm_run for each in self.events if isinstance(each, Started)), None)

    @property
    def application(self) -> str | None:
        return next((each.application_id for each in self.events if isinstance(each, Started)), None)

    @property
    def states(self) -> dict[str, str]:
        return {each.step: each.state for each in self.events if isinstance(each, StepDone)}

    @property
    def values(self) -> dict[str, Any]:
        return {each.step: each.value for each in self.events if isinstance(each, StepDone)}

    @property
    def finished(self) -> Finished | None:
        return next((each for each in self.events if isinstance(each, Finished)), None)

    @property
    def lines(self) -> list[str]:
        return [line for each in self.events if isinstance(each, StepLog) for line in each.lines]


@dataclass
class Begun:
    """A run that goes on."""

    relay: subprocess.Popen[str]
    folder: Path
    output: Path

    def end(self) -> Served:
        """Wait for its end."""
        code = self.relay.wait(LONG_S)
        text = self.output.read_text("utf-8", "replace")
        events = self.folder / "events"
        written = events.read_text().splitlines() if events.exists() else []
        return Served(code, text, [decode_batch(line) for line in written])

    def has_said(self, text: str) -> bool:
        """Whether its output has it."""
        return text in self.output.read_text("utf-8", "replace")


@dataclass
class Lab:
    """A cache folder with its warm applications, and runs."""

    folder: Path
    master: str = "local[2]"
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    terms: Terms = field(default_factory=lambda: Terms(60.0, 50))
    roots: tuple[Path, ...] = ()
    owner: str | None = None
    """Name of the process whose end ends applications; None: as a launch task finds it."""
    relay: tuple[str, ...] = ()
    """What is run in the relay's place; empty: the relay."""
    host: tuple[str, ...] = (HOST,)
    variables: dict[str, str] = field(default_factory=dict)
    """Of the environment of all its runs."""
    begun: list[Begun] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "cache" / "warm").mkdir(parents=True, mode=0o700, exist_ok=True)
        (self.folder / "cache").chmod(0o700)
        (self.folder / "cache" / "warm").chmod(0o700)

    @property
    def warm(self) -> Path:
        return self.folder / "cache" / "warm"

    def begin(
        self, flow: Flow, *, environment: Mapping[str, str] | None = None, launcher: int | None = None, **fields: Any
    ) -> Begun:
        """Start a relay, as the process of a launch task would.

        :param launcher: that process; None: this one.
        """
        launcher = launcher or os.getpid()
        own = self.folder / uuid.uuid4().hex[:8]
        own.mkdir(mode=0o700)
        made = manifest_of(own, flow, events=str(own / "events"), **{"launcher_pid": launcher, **fields})
        (own / "manifest").write_text(made.to_json())
        calls = {name: cloudpickle.dumps(call) for name, call in flow.calls.items()}
        content = cloudpickle.dumps({PAYLOAD_KEY: made.to_json().encode(), SECRETS_KEY: b"[]", **calls})
        (own / "payload").write_bytes(content)
        lines = "".join(f"{name} {value}\n" for name, value in self.settings.items())
        (own / "spark.properties").write_text(lines)
        told = {
            # Of one test, as no application's environment is of one task: else none is met that another test left.
            **{name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
            ENV_NONCE: NONCE,
            ENV_MANIFEST_SHA256: hash_content(made.to_json().encode()),
            ENV_PAYLOAD: str(own / "payload"),
            ENV_PAYLOAD_SHA256: hash_content(content),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            **self.variables,
            **(environment or {}),
        }
        command = [
            SPARK_SUBMIT,
            "--master",
            self.master,
            "--properties-file",
            str(own / "spark.properties"),
            *self.host,
        ]
        offer = Offer(
            self.terms, self.folder / "cache", "dag.flow", "spark_default", "default_pool", "default", self.roots
        )
        request = build_request(offer, command, str(own / "manifest"), self.settings, told)
        owner = request.owner if self.owner is None else self.owner
        request = replace(request, launcher=name_process(launcher), owner=owner)
        stored = store_request(request, own)
        output = own / "output"
        with output.open("w") as out:
            relay = subprocess.Popen(
                [*(self.relay or stored[:-1]), stored[-1]], env=told, stdout=out, stderr=subprocess.STDOUT, text=True,
                start_new_session=True,
            )  # fmt: skip
        self.begun.append(Begun(relay, own, output))
        return self.begun[-1]

    def run(self, flow: Flow, **how: Any) -> Served:
        """Have it served."""
        return self.begin(flow, **how).end()

    def list_warm(self) -> list[Application]:
        return list(list_applications(self.warm))

    def list_folders(self) -> list[Path]:
        """Of applications, also of those that nobody is at home in."""
        return [each for each in self.warm.iterdir() if each.is_dir()]

    def find_status(self) -> Status | None:
        """Of the only application."""
        found = self.list_warm()
        return ask_status(found[0]) if found else None

    def end_all(self) -> None:
        """Also those that are only just starting."""
        for each in self.begun:
            each.relay.kill()
            each.relay.wait()

        def end() -> bool:
            found = self.list_warm()
            for each in found:
                tell_end(each, "the test is over", at_once=True)
            return not found

        wait_until(end, "the applications end", LONG_S)


@contextmanager
def open_lab(folder: Path, **how: Any) -> Iterator[Lab]:
    lab = Lab(folder, **how)
    try:
        yield lab
    finally:
        lab.end_all()


def wait_until(holds: Callable[[], object], what: str | Callable[[], str], within_s: float = 60.0) -> None:
    """Wait for a condition, with a deadline."""
    until = time.monotonic() + within_s
    while not holds():
        told = what if isinstance(what, str) else what()
        assert time.monotonic() < until, f"not within {within_s:.0f} s: {told}"
        time.sleep(0.05)


def list_children(pid: int) -> list[int]:
    """The eldest first: by when they began, for numbers begin anew."""
    told = [read_if_there(file) for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return sorted(
        {int(number) for text in told for number in text.split()}, key=lambda child: int(read_beginning(child) or 0)
    )


@contextmanager
def sleeping_process() -> Iterator[subprocess.Popen[bytes]]:
    """One that stands for Airflow's, which may be killed."""
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    yield started
    started.kill()
    started.wait()


def list_processes(text: str) -> dict[int, list[str]]:
    """Words of the command lines of processes that have ``text`` there, or in their environment."""
    found = {int(each.name): each for each in Path("/proc").iterdir() if each.name.isdigit()}
    mine = {
        pid: each
        for pid, each in found.items()
        if any(text in read_if_there(each / of) for of in ("cmdline", "environ"))
    }
    return {pid: words for pid, each in mine.items() if (words := read_if_there(each / "cmdline").split("\0"))[0]}


def name_parts(processes: Mapping[int, list[str]]) -> dict[str, int]:
    """Those of one warm application, by what they are, as far as they are there.

    :param processes: words of the command line of each.
    """
    javas = [pid for pid, words in processes.items() if words[0].endswith("java")]
    # What Java has just forked looks like it for a moment, and has no child.
    java = sorted(javas, key=lambda pid: not list_children(pid))[:1]
    host = [child for pid in java for child in list_children(pid) if child in processes][:1]
    children = [child for pid in host for child in list_children(pid) if child in processes]
    return dict(zip(("java", "host", "keeper", "run"), (*java, *host, *children), strict=False))


def read_if_there(path: Path) -> str:
    """Empty where it is not, as files of a process that has ended are."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def flow_of(*functions: Callable[..., Any], **spec: Any) -> Flow:
    """A flow of steps, each called by its name."""
    flow = Flow()
    for function in functions:
        flow.step(function, **spec)
    return flow


def load(text: str) -> Any:
    return json.loads(text)
