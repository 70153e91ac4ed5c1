"""Whether an application has the executors it asked for: before that its queries would run, and no batch end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.executor_settings import CORES, INSTANCES, MOST_CORES

ENOUGH = 0.8
"""Share of the executors with which work begins: as Spark has it where a manager grants them one by one."""


def count_enough(conf: Mapping[str, str]) -> int:
    """Executors with which a stream may begin; 0: nobody said how many there will be, or it is its own only one.

    :param conf: the application's settings.
    """
    if conf.get("spark.master", "").partition("[")[0] == "local":
        return 0
    cores, most = _read_count(conf, CORES), _read_count(conf, MOST_CORES)
    asked = most // cores if cores and most else _read_count(conf, INSTANCES)
    return math.ceil(asked * ENOUGH)


def _read_count(conf: Mapping[str, str], name: str) -> int:
    text = conf.get(name, "")
    return int(text) if text.isdecimal() else 0


def await_executors(main: SparkSession, go_on: Callable[[str], bool], pause: Callable[[], object]) -> bool:
    """Return once there are enough; False: they are not waited for any more.

    :param go_on: says whether they are, told how many there are.
    """
    enough = count_enough(dict(main.sparkContext.getConf().getAll()))
    while enough and (there := count_executors(main)) < enough:
        if not go_on(f"waits for executors: {there} of {enough} are there"):
            return False
        pause()
    return True


def count_executors(main: SparkSession) -> int:
    """Executors that are there; the driver, which Spark counts as one, is none."""
    return int(main.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


def list_hosts(main: SparkSession) -> tuple[str, ...]:
    """Hosts of the executors that are there, each once."""
    spark = main.sparkContext._jsc.sc()
    driver = spark.env().blockManager().blockManagerId().hostPort()
    found, names = set(), spark.getExecutorMemoryStatus().keysIterator()
    while names.hasNext():
        found.add(names.next())
    return tuple(sorted({name.rpartition(":")[0] for name in found if name != driver}))
