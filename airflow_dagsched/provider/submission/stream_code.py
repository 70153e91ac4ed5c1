"""What a stream is, part by part: its steps as written, and what the author says beside."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions.xcom_arg import XComArg

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.launch.secrecy.masking import Masking, find_secrets
from airflow_dagsched.launch.steps.code import read_parts
from airflow_dagsched.launch.streams.fingerprint import (
    FlowCode,
    fingerprint_flow,
    fingerprint_step,
    hash_value,
    list_differences,
)
from airflow_dagsched.provider.spec.call_arguments import list_operators, transform_leaves
from airflow_dagsched.version import __version__

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import AuthoredStep, DataflowSpec
    from airflow_dagsched.provider.spec.stream_spec import StreamSpec

OF_SIZE = ("cores", "memory", "disk", "parallelism", "pinned", "placement", "stateful", "carries", "weight")
"""What a step declares that makes another application, or another plan, of the stream."""
NOT_OF_EPOCHS = ("confirm", "hold_slot", "deploy_within_s", "stuck_within_s", "catch_up_within_s", "ends_within_s")
"""Settings of how a switch is done: another one changes nothing that runs."""


def add_code(stream: StreamSpec, flow: DataflowSpec, dag_file: str) -> StreamSpec:
    """``stream`` with the fingerprints of ``flow``, which was looked at twice.

    Raises :class:`InvalidInput` where the second look found something else: each parse would be another epoch then.
    """
    first, second = (read_flow_code(stream, flow, dag_file) for _ in range(2))
    for error in find_unsteady(flow, first, second, "from one look to the next"):
        raise error
    steps = {name: fingerprint_step(parts) for name, parts in first.steps.items()}
    return replace(stream, code=steps, fingerprint=fingerprint_flow(first))


def find_unsteady(flow: DataflowSpec, first: FlowCode, second: FlowCode, when: str) -> Iterator[InvalidInput]:
    """What two looks at ``flow`` do not agree on: an error a step, naming the parts.

    :param when: between which looks.
    """
    parts: dict[str, list[str]] = {}
    for step, part in list_differences(first, second):
        parts.setdefault(step, []).append(part)
    for step, names in parts.items():
        make_error = flow.steps[step].make_error if step in flow.steps else flow.make_error
        yield make_error(
            f"{', '.join(names)} differs {when}, so every parse would be another epoch: a stream's code must be told "
            "by its value; make what cannot be (locks, clients, clocks, random numbers) inside the function"
        )


def read_flow_code(stream: StreamSpec, flow: DataflowSpec, dag_file: str) -> FlowCode:
    """All that makes ``flow`` another one if it changes."""
    roots = list_roots(dag_file)
    steps = {name: _read_step(step, roots) for name, step in flow.steps.items()}
    return FlowCode(steps, {name: hash_value(value) for name, value in _list_settings(stream, flow)})


def list_roots(dag_file: str) -> tuple[Path, ...]:
    """Folders whose modules are the author's: that of the DAG file, and those of Python's path that it lies below."""
    file = Path(dag_file).resolve()
    paths = (Path(entry).resolve() for entry in sys.path if Path(entry).is_absolute())
    above = (path for path in paths if file.is_relative_to(path) and path != Path(path.anchor))
    return tuple(dict.fromkeys((file.parent, *above)))


def _read_step(step: AuthoredStep, roots: tuple[Path, ...]) -> dict[str, str]:
    arguments = {name: transform_leaves(value, _name_value) for name, value in step.arguments.items()}
    return read_parts(step.sql if step.function is None else step.function, arguments, roots)


def _name_value(leaf: Any) -> Any:
    """The return value of an ordinary task by its name: what it is, a run knows."""
    return [operator.task_id for operator in list_operators(leaf)] if isinstance(leaf, XComArg) else leaf


def _list_settings(stream: StreamSpec, flow: DataflowSpec) -> Iterator[tuple[str, Any]]:
    """Name and JSON value of each."""
    settings = encode_plain(stream.settings)
    yield from ((name, value) for name, value in settings.items() if name not in NOT_OF_EPOCHS)
    yield from ((f"source {each.name}", encode_plain(each)) for each in stream.sources)
    yield from ((f"query {each.step}", encode_plain(each)) for each in stream.queries)
    for name, step in flow.steps.items():
        yield f"step {name}", {word: getattr(step.declared, word) for word in OF_SIZE}
        yield f"application of {name}", _mask_settings(step.declared.application)
        routed = {output.key: said.routing for output, said in step.channels.items()}
        yield f"channels of {name}", routed
    yield "conf", _mask_settings(flow.conf)
    yield "placement", [flow.placement, dict(flow.placement_settings), flow.conn_id]
    yield "airflow_dagsched", __version__


def digest_sizing(flow: DataflowSpec) -> str:
    """Of all that executors of ``flow`` are planned by, but for the cluster and Spark's own settings.

    Not of how many partitions a step has, or of how many steps: executors take as many in turn as there are.
    """
    declared = (step.declared for step in flow.steps.values())
    sizes = {hash_value([each.cores, each.memory, each.disk, list(each.pinned), each.placement]) for each in declared}
    placement = [flow.placement, dict(flow.placement_settings), flow.conn_id, str(flow.cluster), str(flow.settings)]
    return hash_value([sorted(sizes), placement])


def _mask_settings(settings: Mapping[str, Any]) -> Any:
    """As anybody may see them: a short secret could be guessed from a digest of it."""
    plain = {name: str(value) for name, value in settings.items()}
    masking = Masking()
    masking.add(find_secrets(plain))
    return masking.value(plain)
