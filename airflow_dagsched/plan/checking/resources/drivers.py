"""Each driver program is on a worker there is, or where it is submitted from, and has something to run with."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation


def check_drivers(facts: Facts) -> Iterator[Violation]:
    """A local group's one container is its driver, which asks for nothing on top; any other needs cores and memory."""
    local = facts.cluster.manager == "local"
    for group in facts.plan.groups:
        driver = group.driver
        # Of what has finished it may be gone.
        gone = driver.worker is not None and driver.worker not in facts.workers
        if gone and group.progress != "finished":
            yield Violation("driver", group.id, f"is driven from {driver.worker!r}, which is no worker of the cluster")
        # In local mode the executor is inside the driver's process: what it asks for is the container's.
        if not local and not (driver.cores and driver.memory_mb):
            amounts = f"{driver.cores} cores and {driver.memory_mb} MiB"
            yield Violation("driver", group.id, f"is driven with {amounts}: at least one of each is needed")
