"""What an author declares about a step, as one frozen value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from airflow_dagsched.launch.protocol.rules import RULES

if TYPE_CHECKING:
    from airflow_dagsched.launch.protocol.tables import Table

_UNITS = {"": 1.0, "m": 1.0, "mb": 1.0, "g": 1024.0, "gb": 1024.0, "t": 1024.0**2, "tb": 1024.0**2, "k": 1 / 1024}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def parse_mebibytes(size: str | float) -> int:
    """``"1g"``, ``"512m"`` or a number of MiB as MiB; raises ``ValueError`` for anything else."""
    if isinstance(size, (int, float)):
        return int(size)
    match = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    if not match or match[2].lower() not in _UNITS:
        raise ValueError(f"{size!r} is no size: write '512m', '2g' or a number of MiB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


NOT_IN_DAGS = {"state_mb": 0, "rate_rows_s": 0.0, "window_s": None, "lateness_s": 0.0}
"""What a step of the planner's files can have that no step of a DAG has, with the default of each."""


class Declared(Struct, frozen=True, kw_only=True):
    """Sizes are per instance. 0 means not declared. ``application`` has Spark settings: steps of different ones are in
    different applications. ``mode``, ``stateful`` and ``carries`` are of steps of a stream (``SparkDataflow(...,
    mode="streaming")``); what else the planner's files have of such steps follows from the stream's settings.
    """

    cores: int = 1
    memory: str | int = 0
    disk: str | int = 0
    parallelism: int | None = None
    """None: the author says nothing. Planned as one instance; Spark shares its work out as it does by default."""
    runtime_s: float = 0
    reads: Table | Sequence[Table] | None = None
    writes: Table | None = None
    works_without_input: bool = True
    needs: Literal["all", "any"] = "all"
    isolate: bool = False
    application: Mapping[str, Any] = field(default_factory=dict)
    mode: Literal["batch", "streaming"] = "batch"
    stateful: bool = False
    carries: Sequence[str] = ()
    """Names of the state that a changed graph takes over (``channel="carry"``)."""
    pinned: Sequence[str] = ()
    """Ids of the only workers it may be on. Steps of unlike pins are in different applications."""
    weight: float = 1.0
    """Of one instance, where a policy levels the load of workers."""
    state_mb: int = 0
    rate_rows_s: float = 0.0
    window_s: float | None = None
    lateness_s: float = 0.0
    placement: str = ""
    """Policy of its application, by name or dotted path; empty: the dataflow's. Steps of different ones share none."""
    rule: str = "all_success"

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"trigger_rule {self.rule!r} is none of {', '.join(RULES)}")
        for count, name in ((self.instances, "parallelism"), (self.cores, "cores")):
            if not isinstance(count, int) or count < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {count!r}")
        if not isinstance(self.runtime_s, (int, float)) or self.runtime_s < 0:
            raise ValueError(f"runtime_s must be a number of at least 0, not {self.runtime_s!r}")
        for value, name in ((self.memory, "memory"), (self.disk, "disk")):
            try:
                parse_mebibytes(value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        self._check_places()
        self._check_what_runs()
        if self.reads is not None or self.writes is not None:
            self._check_tables()

    def _check_places(self) -> None:
        # A text is a sequence, too: each of its letters would be a worker.
        if isinstance(self.pinned, str) or not isinstance(self.pinned, Sequence):
            raise ValueError(f"pinned must be a list of workers' ids, not {self.pinned!r}")
        for worker in self.pinned:
            if not isinstance(worker, str) or not worker:
                raise ValueError(f"pinned must be a list of workers' ids, not one with {worker!r}")
        weight = self.weight
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight < float("inf"):
            raise ValueError(f"weight must be a number above 0, not {weight!r}")

    def _check_what_runs(self) -> None:
        said = next((name for name, default in NOT_IN_DAGS.items() if getattr(self, name) != default), None)
        if said is not None:
            raise ValueError(f"{said} is no setting of a step in a DAG: a stream has window=, lateness= of its own")
        if self.mode not in ("batch", "streaming"):
            raise ValueError(f"mode must be 'batch' or 'streaming', not {self.mode!r}")
        if not isinstance(self.stateful, bool):
            raise ValueError(f"stateful must be True or False, not {self.stateful!r}")
        self._check_carries()
        if self.application != {}:
            self._check_application()

    def _check_carries(self) -> None:
        # A text is a sequence, too: each of its letters would be a name.
        names = self.carries if isinstance(self.carries, (list, tuple)) else [None]
        if not all(isinstance(name, str) and name for name in names):
            raise ValueError(f"carries must be a list of names of state, not {self.carries!r}")

    @property
    def of_streams(self) -> str:
        """What was said that is of a step of a stream alone; empty: nothing."""
        said = {"mode='streaming'": self.mode != "batch", "stateful=True": self.stateful, "carries": self.carries}
        return next((name for name, value in said.items() if value), "")

    def _check_application(self) -> None:
        # Here, since few steps have settings of their own, and a DAG file is parsed every few seconds.
        from airflow_dagsched.launch.managers.author_conf import find_settings_mistake

        if mistake := find_settings_mistake(self.application):
            raise ValueError(f"application: {mistake}")

    def _check_tables(self) -> None:
        # Here, as above: a parse of steps that name no table need not load it.
        from airflow_dagsched.launch.protocol.tables import Table

        if not (self.writes is None or isinstance(self.writes, Table)):
            raise ValueError(f"writes must be a Table, not {type(self.writes).__name__}")
        if self.writes is not None and self.writes.where is not None:
            raise ValueError("writes: where is for reads; what is overwritten follows from the rows and partition_by")
        # A text is iterable, too: each of its letters would be a table.
        if isinstance(self.reads, (str, Mapping)) or not isinstance(self.reads, (Table, Iterable, type(None))):
            raise ValueError(f"reads must be a Table or a list of Tables, not {self.reads!r}")
        for table in self.read_tables or ():
            if not isinstance(table, Table):
                raise ValueError(f"reads must be a Table or a list of Tables, not one with {table!r}")
        for name, each in (("writes", self.writes), *(("reads", table) for table in self.read_tables or ())):
            mistake = each.find_mistake() if each is not None else ""
            if mistake:
                raise ValueError(f"{name}: {mistake}")

    @property
    def instances(self) -> int:
        """What is planned: one where the author says nothing."""
        return 1 if self.parallelism is None else self.parallelism

    @property
    def read_tables(self) -> tuple[Table, ...] | None:
        """Declared reads; None where the author declared nothing."""
        if self.reads is None:
            return None
        return tuple(self.reads) if isinstance(self.reads, Iterable) else (self.reads,)
