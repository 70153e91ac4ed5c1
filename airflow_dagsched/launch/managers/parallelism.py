"""How parallel a step is in Spark: as its author declares, so that the plan's waves are those of its tasks.

Scans and shuffles are told by settings of the step's own session; how many cores a task takes, by one of the
application. What an author names in ``conf`` or ``application`` is left to them, with all that goes with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.pruning.tasks import SCAN_SETTINGS


class _Family(Struct, frozen=True):
    """Settings that make sense together."""

    numbers: tuple[str, ...]
    """Those that are the number of instances."""
    authors: tuple[str, ...]
    """How the names begin of which one in the author's hand takes the whole family out of ours."""
    fixed: Mapping[str, str] = field(default_factory=dict)


_FAMILIES = (
    _Family(
        ("spark.sql.shuffle.partitions", "spark.sql.adaptive.coalescePartitions.minPartitionNum"),
        ("spark.sql.shuffle.partitions", "spark.sql.adaptive."),
        # With a minimum alone Spark still joins small partitions, and the waves are others than planned.
        {"spark.sql.adaptive.coalescePartitions.enabled": "false"},
    ),
    _Family(("spark.sql.files.minPartitionNum", "spark.sql.files.maxPartitionNum"), (SCAN_SETTINGS,)),
    _Family(
        ("spark.sql.leafNodeDefaultParallelism",),
        ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism"),
    ),
)


def make_session_settings(instances: int | None, author: Iterable[str]) -> dict[str, str]:
    """SQL settings of the session of a step of so many declared instances; none where nothing is declared.

    :param author: names of the settings that the author gives.
    """
    if instances is None:
        return {}
    named = tuple(author)
    ours = (family for family in _FAMILIES if not any(name.startswith(family.authors) for name in named))
    return {
        name: value
        for family in ours
        for name, value in {**dict.fromkeys(family.numbers, str(instances)), **family.fixed}.items()
    }


def find_task_cores(group: Group, dataflow: Dataflow) -> int:
    """Cores that each task of the group's application takes: those of an instance, of unlike steps what divides all."""
    # An application has one number: Spark SQL's tasks take no other one for each step.
    return math.gcd(*(step.cores for step in dataflow.steps if step.id in group.steps)) or 1
