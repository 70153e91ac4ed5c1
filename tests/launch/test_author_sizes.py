"""Executors as the author's settings size them: what is reserved is what the cluster manager is really asked for."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_dagsched.launch.managers.author_sizes import (
    hide_values,
    name_options,
    settle_settings,
    size_as_submitted,
)
from airflow_dagsched.launch.managers.executors import Executors

PLANNED = Executors({"w1": 4, "w2": 2}, 2, 2200)
"""Six of 2 cores; a heap of 1816 MiB, and 384 beside it."""


@pytest.mark.parametrize(
    ("manager", "author", "on", "cores", "memory_mb"),
    [
        ("standalone", {}, {"w1": 4, "w2": 2}, 2, 2200),
        ("standalone", {"spark.executor.cores": "4"}, {"w1": 2, "w2": 1}, 4, 2200),
        ("standalone", {"spark.executor.cores": 4, "spark.cores.max": "4"}, {"w1": 1}, 4, 2200),
        ("standalone", {"spark.executor.memory": "3g"}, {"w1": 4, "w2": 2}, 2, 3072),
        ("standalone", {"spark.executor.instances": "1"}, {"w1": 4, "w2": 2}, 2, 2200),
        ("yarn", {}, {"w1": 4, "w2": 2}, 2, 2200),
        ("yarn", {"spark.executor.instances": "3"}, {"w1": 2, "w2": 1}, 2, 2200),
        ("yarn", {"spark.executor.memory": "3000m"}, {"w1": 4, "w2": 2}, 2, 3384),
        ("kubernetes", {"spark.executor.memoryOverhead": "1g"}, {"w1": 4, "w2": 2}, 2, 1816 + 1024),
        ("yarn", {"spark.executor.cores": "{{ var.value.cores }}"}, {"w1": 4, "w2": 2}, 2, 2200),
    ],
)
def test_what_is_asked_for(
    manager: str, author: dict[str, Any], on: dict[str, int], cores: int, memory_mb: int
) -> None:
    found = size_as_submitted(PLANNED, author, manager)
    assert (found.on, found.cores, found.memory_mb) == (on, cores, memory_mb)


@pytest.mark.parametrize(
    ("author", "cores"),
    [({}, "12"), ({"spark.executor.cores": "5"}, "10"), ({"spark.executor.cores": "16"}, "16")],
)
def test_a_master_is_asked_for_whole_executors(author: dict[str, str], cores: str) -> None:
    """Fewer cores than one executor has would be waited for without end."""
    planned = {"spark.cores.max": "12", "spark.executor.cores": "2"}
    found = settle_settings(planned, author, PLANNED, "standalone")
    assert found == {**planned, **author, "spark.cores.max": cores}


def test_an_author_s_number_of_cores_is_the_author_s() -> None:
    author = {"spark.executor.cores": "5", "spark.cores.max": "7"}
    assert settle_settings({"spark.cores.max": "12"}, author, PLANNED, "standalone") == {"spark.cores.max": "7"}


def test_sizes_alone_are_told() -> None:
    """Of all else the name: it may be a secret; what is not known before it is rendered is left out of a print."""
    author = {"spark.executor.memory": " 3g", "spark.driver.memory": "{{ x }}", "spark.hadoop.password": "9g"}
    told = hide_values(author)
    assert told == {"spark.executor.memory": "3g", "spark.driver.memory": "", "spark.hadoop.password": ""}
    planned = {"spark.driver.memory": "1024m", "spark.executor.memory": "2g", "spark.executor.cores": "2"}
    settled = settle_settings(planned, told, PLANNED, "yarn")
    assert settled == {"spark.executor.memory": "3g", "spark.executor.cores": "2"}


def test_options_are_settings() -> None:
    assert name_options({"executor_cores": 4, "num_executors": None, "pool": "p"}) == {"spark.executor.cores": "4"}
