"""The tasks of each step now, by Spark's own scheduler: what its pages show lags behind by seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession

from airflow_dagsched.launch.steps.turns import Tasks


class TaskSets:
    """What the scheduler of one application has to run. Each question is a few calls of the JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self._sc: Any = spark.sparkContext._jsc.sc()
        self.task_cores = int(spark.sparkContext._conf.get("spark.task.cpus", "1") or 1)
        """Cores that each task takes."""

    def look(self, steps: Iterable[str]) -> Mapping[str, Tasks]:
        """The tasks of the stages at work of those of ``steps`` that have any. A step's jobs run in its pool."""
        return {step: _sum_tasks(sets) for step in steps if (sets := list(self._iterate_sets(step)))}

    def _iterate_sets(self, step: str) -> Iterator[Any]:
        pool = self._sc.getPoolForName(step)
        # There is none before the step's first job.
        yield from () if pool.isEmpty() else pool.get().schedulableQueue().toArray()

    def count_cores(self) -> int:
        """Tasks that the executors there are can run at once."""
        return int(self._sc.maxNumConcurrentTasks(self._sc.resourceProfileManager().defaultResourceProfile()))


def _sum_tasks(sets: Iterable[Any]) -> Tasks:
    counts = [(int(one.numTasks()), int(one.tasksSuccessful()), int(one.runningTasks())) for one in sets]
    running = sum(each[2] for each in counts)
    return Tasks(sum(each[0] for each in counts), running + sum(each[1] for each in counts), running)
