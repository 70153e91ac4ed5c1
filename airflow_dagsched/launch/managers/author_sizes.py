"""Executors as the author's Spark settings size them: these win over the plan's, so plan and reservation follow them.

plan       6 executors of 2 cores      spark.cores.max=12
author     spark.executor.cores=4      ──> 3 executors of 4 cores, which is what is printed, reserved and submitted

An author says it in ``conf``, in a step's ``application``, or by an option of spark-submit, which comes before both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from airflow_dagsched.launch.managers.author_conf import read_count
from airflow_dagsched.launch.managers.executors import Executors, split_memory
from airflow_dagsched.launch.protocol.executor_settings import CORES, INSTANCES, MEMORY, MOST_CORES, OVERHEAD
from airflow_dagsched.launch.protocol.memory_size import read_mib
from airflow_dagsched.plan.needs import measure_padding
from airflow_dagsched.plan.problem.run import ExecutorSize
from airflow_dagsched.plan.settings import Settings

DRIVER, TASK = "spark.driver.memory", "spark.task.cpus"
TOLD = frozenset({CORES, MEMORY, OVERHEAD, INSTANCES, MOST_CORES, DRIVER, TASK})
"""Settings whose values may be printed, where they are sizes."""
OPTIONS = {
    "executor_cores": CORES,
    "executor_memory": MEMORY,
    "num_executors": INSTANCES,
    "total_executor_cores": MOST_CORES,
    "driver_memory": DRIVER,
}
"""Arguments of a launch task -> the settings that they are."""


def name_options(arguments: Mapping[str, Any]) -> dict[str, str]:
    """The settings that arguments of a launch task are."""
    return {name: str(arguments[option]) for option, name in OPTIONS.items() if arguments.get(option)}


def hide_values(author: Mapping[str, Any]) -> dict[str, str]:
    """The author's settings as they may be told: sizes; of all others, and of templates, the name alone."""
    return {
        name: str(value).strip() if name in TOLD and read_mib(str(value)) is not None else ""
        for name, value in author.items()
    }


def settle_settings(
    planned: Mapping[str, str], author: Mapping[str, str], asked: Executors, manager: str
) -> dict[str, str]:
    """The plan's settings as they are submitted: the author's in their place, left out where these are not told.

    :param asked: the planned executors.
    """
    found = {name: author.get(name, value) for name, value in planned.items()}
    # Cores for no whole executor would be none at all: the Master lets such an application wait for ever.
    if manager == "standalone" and author.get(CORES) and MOST_CORES not in author:
        submitted = size_as_submitted(asked, author, manager)
        found[MOST_CORES] = str(submitted.cores * submitted.count)
    return {name: value for name, value in found.items() if value}


def read_size(author: Mapping[str, Any], settings: Settings, manager: str) -> ExecutorSize:
    """Of each executor, as far as the author says it: what the cluster manager is to count.

    :param settings: the planner's: what is beside a heap of which the author says no more.
    """
    heap, beside = _read_mb(author, MEMORY), _read_mb(author, OVERHEAD)
    memory = heap or 0
    if memory and manager != "standalone":
        memory += measure_padding(memory, settings) if beside is None else beside
    return ExecutorSize(cores=read_count(author, CORES) or 0, memory_mb=memory)


def size_as_submitted(asked: Executors, author: Mapping[str, Any], manager: str) -> Executors:
    """The executors that are really asked for: those of the plan, where ``author`` sets nothing else."""
    cores = read_count(author, CORES) or asked.cores
    if manager == "standalone":
        count = max(1, (read_count(author, MOST_CORES) or asked.cores * asked.count) // cores)
    else:
        count = read_count(author, INSTANCES) or asked.count
    return replace(asked, on=_deal(asked.on, count), cores=cores, memory_mb=_size_memory(asked, author, manager))


def _size_memory(asked: Executors, author: Mapping[str, Any], manager: str) -> int:
    """Heap, and what lies beside it where the manager counts that."""
    heap, beside = _read_mb(author, MEMORY), _read_mb(author, OVERHEAD)
    if manager == "standalone":
        return asked.memory_mb if heap is None else heap
    planned_heap, planned_beside = split_memory(asked.memory_mb, asked.settings)
    if heap is None and beside is None:
        return asked.memory_mb
    return (planned_heap if heap is None else heap) + (planned_beside if beside is None else beside)


def _deal(on: Mapping[str, int], count: int) -> dict[str, int]:
    """So many executors on the planned workers, as evenly as can be, where they are not as many as were planned."""
    if count == sum(on.values()):
        return dict(on)
    each, more = divmod(count, len(on))
    return {worker: each + (at < more) for at, worker in enumerate(on) if each + (at < more)}


def _read_mb(conf: Mapping[str, Any], name: str) -> int | None:
    """None: not given, or a template."""
    found = read_mib(str(conf.get(name, "")))
    return None if found is None else int(found)
