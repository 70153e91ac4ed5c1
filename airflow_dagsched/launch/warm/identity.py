"""What an application must have in common with a run to go on with it.

::

    equal        who starts it, where, over what, by what Java options, settings, environment, Python, in what pool
    as large     memory, number of executors: a larger application serves a smaller run, with executors as that asks for
    as new       this package, the author's modules, files of the site, of Spark and of Java: one of older ones ends
    its own      names, files of one submit, what Airflow says of one task: no two runs have these in common

Nothing here is of an archive of classes: the one run has one and the next has not, and both are told of without it.

Whatever is not known to be a run's own counts: an application that nobody finds again costs time, one that is taken
wrongly costs answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_dagsched.launch.protocol.executor_settings import INSTANCES, MEMORY, MOST_CORES, OVERHEAD
from airflow_dagsched.launch.protocol.memory_size import read_mib

OF_ONE_RUN = frozenset({"spark.app.name"})
"""Settings that say nothing of how an application works."""
SIZES = ("spark.driver.memory", MEMORY, OVERHEAD, INSTANCES, MOST_CORES)
OF_A_TASK = "AIRFLOW_CTX_"
"""Begins what Airflow says of a task. Java, which serves many, has none of it."""
OWN_PREFIXES = (OF_A_TASK, "DAGSCHED_")
OWN_VARIABLES = frozenset({"_", "OLDPWD", "SHLVL", "PWD", "TRACEPARENT", "TRACESTATE", "_AIRFLOW_PROCESS_CONTEXT"})
"""Of the environment of one task: what the steps see of these is their own run's."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The application that a run can go on with."""

    key: str
    """Of all that must be equal."""
    code: str
    """Of the package, the author's modules, and all else that an application reads once."""
    sizes: Mapping[str, float]
    """Setting -> MiB, or a number: at least."""

    def fits(self, other: Wanted) -> bool:
        """Whether an application as ``other`` is as large, and all else equal but its code."""
        large = all(other.sizes.get(name, 0.0) >= size for name, size in self.sizes.items())
        return self.key == other.key and large


@dataclass(frozen=True, slots=True)
class Start:
    """How an application would be started for the run, as far as others may have it in common."""

    command: tuple[str, ...]
    """What is run, without the names of its own files."""
    settings: Mapping[str, str]
    environment: Mapping[str, str]
    connection: str
    pool: str
    queue: str
    folder: str
    """Working folder: what paths that are not absolute mean."""
    user: int
    python: str


def describe_wanted(start: Start, files: Iterable[tuple[str, int, int]]) -> Wanted:
    """What a run that is started so can go on with.

    :param files: name, bytes and time of last change of each file that it would have read.
    """
    sizes = {name: size for name in SIZES if (size := read_mib(start.settings.get(name, ""))) is not None}
    apart = {*OF_ONE_RUN, *sizes}
    # One that names no size has Spark's own, which need not be the smaller one.
    settings = {name: value for name, value in start.settings.items() if name not in apart} | dict.fromkeys(sizes, "")
    environment = select_common(start.environment)
    rest = [start.command, start.connection, start.pool, start.queue, start.folder, start.user, start.python]
    return Wanted(_hash_value([settings, environment, rest]), _hash_value(sorted(files)), sizes)


def _is_of_one_task(variable: str) -> bool:
    """Whether an environment variable is another one in each task."""
    return variable in OWN_VARIABLES or variable.startswith(OWN_PREFIXES)


def select_common(environment: Mapping[str, str]) -> dict[str, str]:
    """What of a task's environment another one has, too."""
    return {name: value for name, value in environment.items() if not _is_of_one_task(name)}


def _hash_value(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
