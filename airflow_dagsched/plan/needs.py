"""What a step instance needs: as declared, else as the settings say. And the padding of a container."""

from __future__ import annotations

import math

from msgspec import Struct

from airflow_dagsched.model.dataflow import Step, Task
from airflow_dagsched.placement.containers.sizing import compute_padding, resolve_needs, resolve_runtime
from airflow_dagsched.plan.settings import Settings


class Need(Struct, frozen=True):
    """Of one instance: cores, MiB, MiB."""

    cores: int
    memory_mb: int
    disk_mb: int


def resolve_step_needs(step: Step, settings: Settings) -> Need:
    """Zero means not declared: then the setting counts."""
    return Need(*resolve_needs(step, settings.step_memory_mb, settings.step_disk_mb))


def resolve_step_runtime(step: Step, settings: Settings) -> float:
    """Seconds of one instance."""
    return resolve_runtime(step.runtime_s, settings.step_runtime_s)


def resolve_task_runtime(task: Task, settings: Settings) -> float:
    """Seconds of an ordinary task."""
    return resolve_runtime(task.runtime_s, settings.task_runtime_s)


def measure_padding(memory_mb: int, settings: Settings) -> int:
    """MiB on top of ``memory_mb``, once per container."""
    # Up: Spark asks the cluster manager for whole MiB, and less than is needed would be a plan that does not fit.
    return math.ceil(compute_padding(memory_mb, settings.padding_min_mb, settings.padding_fraction))
