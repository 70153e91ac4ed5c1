"""The planner's settings: each with default, unit and range, in one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, inspect

from airflow_dagsched.model.ranges import Declared


def _unit(name: str) -> dict[str, str]:
    return {"unit": name}


class Settings(Declared, frozen=True, kw_only=True):
    """What the planner may be told besides dataflow and cluster."""

    version: Literal[1] = 1
    slots: Annotated[
        int, Meta(ge=1, le=64, description="Steps side by side in a batch group.", extra=_unit("steps"))
    ] = 4
    container_cores: Annotated[
        int, Meta(ge=1, le=1024, description="Cores of one container, at most.", extra=_unit("cores"))
    ] = 4
    padding_fraction: Annotated[
        float, Meta(ge=0, le=10, description="Memory on top of what a container's instances need.", extra=_unit("1"))
    ] = 0.1
    padding_min_mb: Annotated[
        int, Meta(ge=0, le=1_048_576, description="Least memory on top, once per container.", extra=_unit("MiB"))
    ] = 384
    step_memory_mb: Annotated[
        int, Meta(ge=1, le=1_048_576, description="Memory of an instance that declares none.", extra=_unit("MiB"))
    ] = 512
    step_disk_mb: Annotated[
        int, Meta(ge=0, le=1_048_576, description="Disk of an instance that declares none.", extra=_unit("MiB"))
    ] = 1
    step_runtime_s: Annotated[
        float, Meta(ge=0, le=1e9, description="Runtime of an instance that declares none.", extra=_unit("s"))
    ] = 1.0
    task_runtime_s: Annotated[
        float, Meta(ge=0, le=1e9, description="Runtime of an ordinary task that declares none.", extra=_unit("s"))
    ] = 10.0
    replan_margin: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Share of what is left that a change of a running plan must save to be made.",
            extra=_unit("1"),
        ),
    ] = 0.1


DEFAULTS = Settings()


def settings_table() -> str:
    """The settings as a table in Markdown, one row each."""
    head = ["| setting | default | unit | range | what |", "|---|---|---|---|---|"]
    return "\n".join([*head, *_rows()]) + "\n"


def _rows() -> Iterator[str]:
    kind = inspect.type_info(Settings)
    assert isinstance(kind, inspect.StructType)
    for field in kind.fields:
        if isinstance(field.type, inspect.Metadata):
            bare, extra = field.type.type, field.type.extra or {}
            assert isinstance(bare, inspect.IntType | inspect.FloatType)
            text = (field.type.extra_json_schema or {}).get("description", "")
            default = msgspec.to_builtins(field.default)
            yield f"| `{field.name}` | {default} | {extra['unit']} | {bare.ge:,.0f} to {bare.le:,.0f} | {text} |"
