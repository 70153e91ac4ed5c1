"""What pruning is asked to do and told, besides dataflow and cluster. All of it may be left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from airflow_dagsched.model.dataflow import Source
from airflow_dagsched.plan.pruning.conditions.condition import ALWAYS, Condition
from airflow_dagsched.plan.pruning.conditions.where import Names
from airflow_dagsched.plan.pruning.emptiness import Causes
from airflow_dagsched.plan.reasons.pruning import IdleReason
from airflow_dagsched.plan.settings import Mode


class PruningInput(Struct, frozen=True):
    """Inputs of a step are named as the run manifest does: ``step/output`` for a dataset, the path for a source."""

    mode: Mode = "auto"
    names: Names = field(default_factory=dict)
    """``interval.start``, ``interval.end``, ``interval.key``; empty: no run is planned, nothing is known of them."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Path of a source -> condition of this run, instead of the declared one."""
    queries: Mapping[tuple[str, str], Condition] = field(default_factory=dict)
    """(step, path) -> what the step's own SQL asks of the source, besides the declared condition."""
    empty_if: Mapping[str, Causes] = field(default_factory=dict)
    """Step -> when it has nothing to do, where more is known than its ``needs`` says."""
    empty: frozenset[str] = frozenset()
    """Datasets of earlier groups that are committed and hold no row."""
    stored: Mapping[str, Source] = field(default_factory=dict)
    """Datasets of earlier groups -> where they are stored."""
    idle: Mapping[str, IdleReason] = field(default_factory=dict)
    """Steps that were found to have nothing to do before, and why."""
    only_rows: frozenset[str] = frozenset()
    """Steps that leave nothing behind but rows for other steps of the dataflow."""

    def find_query_condition(self, step: str, path: str) -> Condition:
        """What the step's own SQL asks of the source at ``path``."""
        return self.queries.get((step, path), ALWAYS)


NO_PRUNING_INPUT = PruningInput()


def name_interval(start: datetime | None, end: datetime | None, key: str | None) -> Names:
    """The names a condition may use for the interval of a run; what the run does not have is None."""
    return {"interval.start": start, "interval.end": end, "interval.key": key}
