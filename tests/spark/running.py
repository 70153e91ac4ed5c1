"""Runs steps through the engine, with real outputs in a temporary folder, and gives back the events."""

from __future__ import annotations

import inspect
import io
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_dagsched import __version__
from airflow_dagsched.launch.protocol.calls import ContextValue, Output
from airflow_dagsched.launch.protocol.events import Event, StepDone, StepLog, StepRunning, decode_batch
from airflow_dagsched.launch.protocol.manifest import Manifest, Repeat, StepSpec
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.driver.engine import run_group
from airflow_dagsched.spark.files.event_files import LocalEventFile
from airflow_dagsched.spark.session.capture_output import capture_output
from airflow_dagsched.spark.steps.payload import Payload
from airflow_dagsched.spark.telling.emitter import Emitter


@dataclass
class Flow:
    """Steps written down as in a DAG: parameters named like steps are channels, ``spark`` is the session."""

    specs: dict[str, StepSpec] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)

    def step(self, function: Callable[..., Any], *, after: tuple[str, ...] = (), **spec: Any) -> None:
        """Add ``function`` as a step of its own name."""
        arguments = {name: self._argument(name) for name in inspect.signature(function).parameters}
        lines, first = inspect.getsourcelines(function)
        location = (inspect.getsourcefile(function) or "", first, first + len(lines) - 1)
        self._add(function.__name__, Call(function, (), arguments), after, {"location": location, **spec})

    def call(self, name: str, function: Callable[..., Any], *inputs: str, **spec: Any) -> None:
        """Add a step that calls ``function`` with the session, then its inputs."""
        arguments = (ContextValue("spark"), *(Output(each) for each in inputs))
        self._add(name, Call(function, arguments, {}), (), spec)

    def sql(self, name: str, text: str, *inputs: str, **spec: Any) -> None:
        """Add a SQL step."""
        self._add(name, Call(None, (), {each: Output(each) for each in inputs}, text), (), spec)

    def _argument(self, name: str) -> Any:
        step, _, output = name.partition("__")
        return Output(step, output) if step in self.specs else ContextValue(name)

    def _add(self, name: str, call: Call, after: tuple[str, ...], spec: Mapping[str, Any]) -> None:
        inputs = tuple(each for each in (*call.args, *call.kwargs.values()) if isinstance(each, Output))
        upstream = tuple(dict.fromkeys([*(each.step for each in inputs), *after]))
        facts = {"code": f"code of {name}", "inputs": inputs, "upstream": upstream, **spec}
        self.specs[name] = StepSpec(name, **facts)
        self.calls[name] = call


@dataclass
class Ran:
    """One run of the engine."""

    ok: bool
    batches: list[tuple[Event, ...]]

    @property
    def done(self) -> dict[str, StepDone]:
        return {event.step: event for batch in self.batches for event in batch if isinstance(event, StepDone)}

    @property
    def states(self) -> dict[str, str]:
        return {step: done.state for step, done in sorted(self.done.items())}

    @property
    def ran(self) -> list[str]:
        return sorted(event.step for batch in self.batches for event in batch if isinstance(event, StepRunning))

    def lines(self, step: str) -> list[str]:
        logs = (event for batch in self.batches for event in batch if isinstance(event, StepLog) and event.step == step)
        return [line for log in logs for line in log.lines]


def run(spark: SparkSession, folder: Path, flow: Flow, *, repeats: tuple[Repeat, ...] = (), **manifest: Any) -> Ran:
    """Run ``flow`` as one group, unless ``targets`` says otherwise; ``manifest`` overrides its fields."""
    made = manifest_of(folder, flow, repeats, **manifest)
    masking = Masking()
    payload = Payload(flow.calls, {})
    masking.learn(payload.list_arguments())
    events = folder / f"events-{uuid.uuid4().hex}.jsonl"
    emitter = Emitter(LocalEventFile(str(events)), "", io.StringIO(), masking)
    with capture_output(emitter.add_line):
        ok = run_group(spark, made, payload, emitter.emit, mask=masking.value)
    emitter.flush()
    return Ran(ok, [decode_batch(line) for line in events.read_text().splitlines()])


def manifest_of(folder: Path, flow: Flow, repeats: tuple[Repeat, ...] = (), **fields: Any) -> Manifest:
    """The manifest of ``flow`` as one group."""
    made = Manifest(
        package_version=__version__,
        python="3.11",
        dag_id="dag",
        dataflow="flow",
        group="launch",
        run_id="run",
        try_number=1,
        clear_number=0,
        work_dir=str(folder / "work"),
        events="",
        interval_key="2013-01-01",
        targets=tuple(flow.specs),
        steps=tuple(flow.specs.values()),
        repeats=repeats,
    )
    return replace(made, **fields)
