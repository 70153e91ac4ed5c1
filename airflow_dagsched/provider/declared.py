"""What an author declares about a step, as one frozen value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_dagsched.launch.rules import RULES
from airflow_dagsched.launch.tables import Table

_UNITS = {"": 1.0, "m": 1.0, "mb": 1.0, "g": 1024.0, "gb": 1024.0, "t": 1024.0**2, "tb": 1024.0**2, "k": 1 / 1024}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def mebibytes(size: str | float) -> int:
    """``"1g"``, ``"512m"`` or a number of MiB as MiB; raises ``ValueError`` for anything else."""
    if isinstance(size, (int, float)):
        return int(size)
    match = _SIZE.fullmatch(size.strip())
    if not match or match[2].lower() not in _UNITS:
        raise ValueError(f"{size!r} is no size: write '512m', '2g' or a number of MiB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Sizes are per instance. 0 means not declared."""

    cores: int = 1
    memory: str | int = 0
    disk: str | int = 0
    parallelism: int = 1
    runtime_s: float = 0
    reads: Table | Sequence[Table] | None = None
    writes: Table | None = None
    works_without_input: bool = True
    isolate: bool = False
    application: Mapping[str, Any] = field(default_factory=dict)
    mode: Literal["batch", "streaming"] = "batch"
    stateful: bool = False
    rule: str = "all_success"

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"trigger_rule {self.rule!r} is none of {', '.join(RULES)}")
        if self.parallelism < 1 or self.cores < 1:
            raise ValueError("parallelism and cores must be at least 1")
        for value, name in ((self.memory, "memory"), (self.disk, "disk")):
            try:
                mebibytes(value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        if not (self.writes is None or isinstance(self.writes, Table)):
            raise ValueError(f"writes must be a Table, not {type(self.writes).__name__}")

    @property
    def read_tables(self) -> tuple[Table, ...] | None:
        """Declared reads; None where the author declared nothing."""
        if self.reads is None:
            return None
        return (self.reads,) if isinstance(self.reads, Table) else tuple(self.reads)
