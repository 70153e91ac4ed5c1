"""Settings of the placement policies, each with default, unit and range, in one table.

The defaults are those for Spark; ``TWISTER2_VALUES`` are where Twister2's differ, whose keys are aliases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, inspect
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.codec import decode_json
from airflow_dagsched.model.ranges import describe_setting
from airflow_dagsched.placement.high_availability.settings import Settings

Amount = Annotated[float, Meta(ge=0, le=1e9)]
Some = Annotated[float, Meta(gt=0, le=1e9)]
Percent = Annotated[float, Meta(ge=0, le=1000)]
Share = Annotated[float, Meta(ge=0, le=1)]
Cap = Annotated[int, Meta(ge=1, le=1_000_000)]
Steps = Annotated[int, Meta(ge=1, le=64)]


class PlacementSettings(Settings, frozen=True, kw_only=True):
    """What a policy may be told besides dataflow, workers and state; inherited: what concerns state."""

    twister2_compatible: Annotated[
        bool, describe_setting("Place as Twister2's code does, with its defects.", "flag")
    ] = False
    # 384 MiB or 10 %: Spark's own spark.executor.minMemoryOverhead and memoryOverheadFactor.
    ram_padding_mb: Annotated[Amount, describe_setting("Memory on top of a container's instances.", "MiB")] = 384.0
    disk_padding_mb: Annotated[Amount, describe_setting("Disk on top of a container's instances.", "MiB")] = 0.0
    cpu_padding: Annotated[Amount, describe_setting("Cores reported on top; never held against a worker.", "cores")] = (
        0.0
    )
    padding_percent: Annotated[
        Percent | None, describe_setting("The same as a share of their memory, where that is more.", "%")
    ] = 10.0
    instance_memory_mb: Annotated[Some, describe_setting("Memory of an instance that declares none.", "MiB")] = 512.0
    instance_disk_mb: Annotated[Amount, describe_setting("Disk of an instance that declares none.", "MiB")] = 1.0
    instance_runtime_s: Annotated[Amount, describe_setting("Runtime of an instance that declares none.", "s")] = 1.0
    instance_cores: Annotated[Some, describe_setting("Cores of an instance in a logical container.", "cores")] = 1.0
    instances_per_container: Annotated[
        Cap | None,
        describe_setting("In a container, at most, in batch of each step; sizes the logical one.", "instances"),
    ] = None
    max_instances_per_worker: Annotated[
        Cap | None, describe_setting("On a worker, at most, in batch of each step.", "instances")
    ] = None
    step_parallelism: Annotated[
        dict[str, Cap | None] | None,
        describe_setting("Instances of steps in place of their own parallelism: in no plan.", "instances"),
    ] = None
    container_memory_mb: Annotated[Some | None, describe_setting("Memory of a logical container.", "MiB")] = None
    container_disk_mb: Annotated[Some | None, describe_setting("Disk of a logical container.", "MiB")] = None
    container_cpu: Annotated[Some | None, describe_setting("Cores of a logical container.", "cores")] = None
    container_size: Annotated[
        Literal["offered", "required"], describe_setting("A container gets what is offered, or its needs.", "choice")
    ] = "required"
    steps_at_once: Annotated[Steps, describe_setting("Steps side by side in a batch container.", "steps")] = 4
    barriers: Annotated[
        bool, describe_setting("A batch level waits for the one before, which gives all back.", "flag")
    ] = False
    worker_bandwidth_mb_s: Annotated[Some, describe_setting("Of a worker that declares none.", "MiB/s")] = 100.0
    worker_latency_s: Annotated[Amount, describe_setting("Of a worker that declares none.", "s")] = 0.02
    datanode_bandwidth_mb_s: Annotated[Some, describe_setting("Of the hosts that store blocks.", "MiB/s")] = 200.0
    datanode_latency_s: Annotated[Amount, describe_setting("Of the hosts that store blocks.", "s")] = 0.01
    rack_share: Annotated[Share, describe_setting("Of a transfer's cost within one rack.", "1")] = 0.5
    moved_mb_cost: Annotated[Amount, describe_setting("Of a MiB between two workers, as cost.", "cost")] = 0.01

    @property
    def padding_fraction(self) -> float:
        """``padding_percent`` as a share of 1."""
        return (self.padding_percent or 0.0) / 100


SPARK = PlacementSettings()

TWISTER2_VALUES: dict[str, Any] = {
    "ram_padding_mb": 2.0,
    "disk_padding_mb": 12.0,
    "cpu_padding": 1.0,
    "padding_percent": None,
    "instance_memory_mb": 512.0,
    "instance_disk_mb": 500.0,
    "instance_cores": 2.0,
    "instances_per_container": 2,
    "container_size": "offered",
    "steps_at_once": 1,
    "barriers": True,
}
"""Where Twister2's defaults differ from Spark's; a level ends before the next begins."""

ALIASES: dict[str, str] = {
    "ram.padding.container": "ram_padding_mb",
    "disk.padding.container": "disk_padding_mb",
    "cpu.padding.container": "cpu_padding",
    "container.padding.percentage": "padding_percent",
    "task.instance.ram": "instance_memory_mb",
    "task.instance.disk": "instance_disk_mb",
    "task.instance.cpu": "instance_cores",
    "task.instances": "instances_per_container",
    "task.instance.odd.parallelism": "step_parallelism",
    "max.task.instances.per.worker": "max_instances_per_worker",
    "container.instance.ram": "container_memory_mb",
    "container.instance.disk": "container_disk_mb",
    "container.instance.cpu": "container_cpu",
    "container.instance.bandwidth": "worker_bandwidth_mb_s",
    "container.instance.latency": "worker_latency_s",
    "datanode.instance.bandwidth": "datanode_bandwidth_mb_s",
    "datanode.instance.latency": "datanode_latency_s",
}
"""Twister2's keys after ``twister2.`` or ``twister2.taskscheduler.``."""


def parse_settings(
    raw: Mapping[str, Any], where: str = "settings", *, defaults: Mapping[str, Any] | None = None
) -> PlacementSettings:
    """Settings from names or Twister2's keys; raises ``InvalidInput``.

    What is not named is as in ``defaults``: where these are not given, Twister2's with ``twister2_compatible``,
    else Spark's. Twister2's padding is an amount or, if only the percentage is named, a share: never both.
    Twister2's logical container, unless it is named, holds as many default instances as go into one.
    """
    named = resolve_aliases(raw, where)
    if defaults is None:
        # Nothing is checked yet: what is neither true nor false is refused below.
        defaults = TWISTER2_VALUES if named.get("twister2_compatible") is True else {}
    twister2 = defaults is TWISTER2_VALUES
    # The amounts' defaults would count on top of the share that was asked for.
    if twister2 and "padding_percent" in named:
        defaults = {**defaults, "ram_padding_mb": 0.0, "disk_padding_mb": 0.0, "cpu_padding": 0.0}
    # One way in for all: types and ranges of settings are checked as those of files are.
    settings = decode_json(PlacementSettings, msgspec.json.encode({**defaults, **named}), where)
    return _size_logical_container(settings) if twister2 else settings


def _size_logical_container(settings: PlacementSettings) -> PlacementSettings:
    count = settings.instances_per_container or 1
    return replace(
        settings,
        container_memory_mb=settings.container_memory_mb or count * settings.instance_memory_mb,
        container_disk_mb=settings.container_disk_mb or count * settings.instance_disk_mb,
        container_cpu=settings.container_cpu or count * settings.instance_cores,
    )


def resolve_aliases(raw: Mapping[str, Any], where: str = "settings") -> dict[str, Any]:
    """``raw`` with our names for Twister2's keys; one setting named twice is refused."""
    named: dict[str, Any] = {}
    for key, value in raw.items():
        name = _resolve_name(key)
        if name in named:
            raise InvalidInput(where, key, f"says {name} a second time")
        named[name] = value
    return named


def _resolve_name(key: str) -> str:
    # Twister2 0.1 and 0.2 had the shorter prefix.
    for prefix in ("twister2.taskscheduler.", "twister2."):
        if key.startswith(prefix):
            return ALIASES.get(key.removeprefix(prefix), key)
    return key


def render_settings_table() -> str:
    """The settings as a table in Markdown, one row each."""
    head = ["| setting | Spark | Twister2 | unit | range | what |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *_render_rows()]) + "\n"


def _render_rows() -> Iterator[str]:
    kind = inspect.type_info(PlacementSettings)
    assert isinstance(kind, inspect.StructType)
    inherited, twister2 = Settings.__struct_fields__, parse_settings({"twister2_compatible": True})
    # Placement before state, each in the order of its declaration: the sort is stable.
    for field in sorted(kind.fields, key=lambda field: field.name in inherited):
        assert isinstance(field.type, inspect.Metadata)
        unit, text = (field.type.extra or {})["unit"], (field.type.extra_json_schema or {})["description"]
        ours, theirs = (_format_value(getattr(values, field.name)) for values in (SPARK, twister2))
        yield f"| `{field.name}` | {ours} | {theirs} | {unit} | {_format_range(field.type.type)} | {text} |"


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None or value == () else f"{value}"


def _format_range(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.UnionType):
        kind = next(part for part in kind.types if not isinstance(part, inspect.NoneType))
    if isinstance(kind, inspect.DictType):
        return f"by step: {_format_range(kind.value_type)}"
    if isinstance(kind, inspect.Metadata):
        return _format_range(kind.type)
    if isinstance(kind, inspect.LiteralType):
        return " or ".join(sorted(map(str, kind.values)))
    if isinstance(kind, inspect.VarTupleType):
        return f"up to {kind.max_length}"
    if not isinstance(kind, inspect.IntType | inspect.FloatType):
        return "true or false"
    least = "above 0" if kind.ge is None else f"{kind.ge:,.0f}"
    return f"{least} to {kind.le:,.0f}"
