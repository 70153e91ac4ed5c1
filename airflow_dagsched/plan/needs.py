"""What a step instance needs: as declared, else as the settings say. And the padding of a container."""

from __future__ import annotations

import math

from msgspec import Struct

from airflow_dagsched.model.dataflow import Step, Task
from airflow_dagsched.plan.settings import Settings


class Need(Struct, frozen=True):
    """Of one instance: cores, MiB, MiB."""

    cores: int
    memory_mb: int
    disk_mb: int


def need_of(step: Step, settings: Settings) -> Need:
    """Zero means not declared: then the setting counts."""
    return Need(step.cores, step.memory_mb or settings.step_memory_mb, step.disk_mb or settings.step_disk_mb)


def runtime_of(step: Step, settings: Settings) -> float:
    """Seconds of one instance."""
    return step.runtime_s or settings.step_runtime_s


def task_runtime_of(task: Task, settings: Settings) -> float:
    """Seconds of an ordinary task."""
    return task.runtime_s or settings.task_runtime_s


def padding(memory_mb: int, settings: Settings) -> int:
    """MiB on top of ``memory_mb``, once per container."""
    return max(settings.padding_min_mb, math.ceil(memory_mb * settings.padding_fraction))
