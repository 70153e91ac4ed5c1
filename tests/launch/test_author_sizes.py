"""Executors as the author's settings size them: what is reserved is what the cluster manager is really asked for."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_dagsched.launch.managers.author_sizes import size_as_submitted
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
