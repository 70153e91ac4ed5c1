"""The planner's settings: each with default, unit and range, in one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, inspect

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.ranges import Declared, Id


def _declare_unit(name: str) -> dict[str, str]:
    return {"unit": name}


Mode = Literal["analysed", "declared", "auto", False]
"""How a run leaves out what it does not need: see ``pruning``."""

_Lists = tuple[tuple[Id, ...], ...]


class Settings(Declared, frozen=True, kw_only=True):
    """What the planner may be told besides dataflow and cluster."""

    version: Literal[1] = 1
    slots: Annotated[
        int,
        Meta(ge=1, le=64, description="Steps side by side in a batch group, at most.", extra=_declare_unit("steps")),
    ] = 64
    container_cores: Annotated[
        int, Meta(ge=1, le=1024, description="Cores of one container, at most.", extra=_declare_unit("cores"))
    ] = 4
    padding_fraction: Annotated[
        float,
        Meta(ge=0, le=10, description="Memory on top of what a container's instances need.", extra=_declare_unit("1")),
    ] = 0.1
    padding_min_mb: Annotated[
        int,
        Meta(ge=0, le=1_048_576, description="Least memory on top, once per container.", extra=_declare_unit("MiB")),
    ] = 384
    step_memory_mb: Annotated[
        int,
        Meta(ge=1, le=1_048_576, description="Memory of an instance that declares none.", extra=_declare_unit("MiB")),
    ] = 512
    step_disk_mb: Annotated[
        int, Meta(ge=0, le=1_048_576, description="Disk of an instance that declares none.", extra=_declare_unit("MiB"))
    ] = 1
    step_runtime_s: Annotated[
        float, Meta(ge=0, le=1e9, description="Runtime of an instance that declares none.", extra=_declare_unit("s"))
    ] = 1.0
    task_runtime_s: Annotated[
        float,
        Meta(ge=0, le=1e9, description="Runtime of an ordinary task that declares none.", extra=_declare_unit("s")),
    ] = 10.0
    max_steps_per_group: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Steps of one group, at most.", extra=_declare_unit("steps"))
    ] = 1_000_000
    applications: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Applications side by side, at most; 0: as many as fit.",
            extra=_declare_unit("applications"),
        ),
    ] = 0
    failures_per_hour: Annotated[
        float,
        Meta(
            ge=0,
            le=1e6,
            description="Failures of a running application; each repeats its group.",
            extra=_declare_unit("1/h"),
        ),
    ] = 0.0
    apart: Annotated[
        _Lists, Meta(description="No two steps of a list are in one group.", extra=_declare_unit("ids"))
    ] = ()
    together: Annotated[
        _Lists, Meta(description="All steps of a list are in one group.", extra=_declare_unit("ids"))
    ] = ()
    replan_margin: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Share of what is left that a change of a running plan must save to be made.",
            extra=_declare_unit("1"),
        ),
    ] = 0.1
    warm: Annotated[
        bool,
        Meta(
            description="Groups go on in applications that are warm: each costs `warm_start_s`.",
            extra=_declare_unit("1"),
        ),
    ] = False


DEFAULTS = Settings()


def refuse_idle_lists(settings: Settings, where: str = "settings") -> None:
    """Raise ``InvalidInput`` for a list that an author wrote of fewer than two steps: nothing would come of it."""
    for field in ("apart", "together"):
        for at, names in enumerate(getattr(settings, field)):
            if len(set(names)) < 2:
                raise InvalidInput(where, f"{field}[{at}]", "takes two steps or more: nothing comes of fewer")


def write_settings_table() -> str:
    """The settings as a table in Markdown, one row each."""
    head = ["| setting | default | unit | range | what |", "|---|---|---|---|---|"]
    return "\n".join([*head, *_write_rows()]) + "\n"


def _write_rows() -> Iterator[str]:
    kind = inspect.type_info(Settings)
    assert isinstance(kind, inspect.StructType)
    for field in kind.fields:
        if isinstance(field.type, inspect.Metadata):
            unit = (field.type.extra or {})["unit"]
            text = (field.type.extra_json_schema or {}).get("description", "")
            default = msgspec.json.encode(field.default).decode()
            yield f"| `{field.name}` | {default} | {unit} | {_write_range(field.type.type)} | {text} |"


def _write_range(bare: inspect.Type) -> str:
    if isinstance(bare, inspect.IntType | inspect.FloatType):
        return f"{bare.ge:,.0f} to {bare.le:,.0f}"
    return "true or false" if isinstance(bare, inspect.BoolType) else "lists of steps"
