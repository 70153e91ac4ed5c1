"""What Java is told in an application of a few minutes: its quick compiler; where the rows are, a heap of full size."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.plan_types import Group

SHORT_S = 300.0
LIGHT_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java's quick compiler alone. The thorough one takes a third of all processor time of an application of a few
minutes on a few cores, which does not run its code often enough to earn that back; a long one does.

With the room for its code that Java has with both. Alone the quick one gets 48 MB: an application that stays for more
than three runs of twenty steps fills it, throws code away and compiles it again, a sixth of each run after that.
"""
WHOLE_HEAP = "-XX:InitialRAMPercentage=100 -XX:MetaspaceSize=256m"
"""A heap that begins as large as it may become, and no collection because classes were loaded. A heap that grows is
collected each time before it does: half of the collections of twenty steps, a twentieth of their processor time. Not
``-Xms``, with which Java does not start where the heap may not become so large.
"""
LIGHT_LOCAL = f"{LIGHT_COMPILER} {WHOLE_HEAP}"
"""Where the driver has the rows. Elsewhere it shares the Airflow worker's host with others, and has few objects;
executors' heaps hardly grow in a short application.
"""
CHOICES = frozenset({LIGHT_COMPILER, LIGHT_LOCAL})
"""By its value it is known that what a setting says was chosen here."""
DRIVER, EXECUTOR = JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions")


def choose_java_options(group: Group, cluster: Cluster) -> Mapping[str, str]:
    """Settings of the application of ``group``; none where it is a long one."""
    if group.time.compute >= SHORT_S:
        return {}
    if cluster.manager == "local":
        return {DRIVER: LIGHT_LOCAL}
    return dict.fromkeys(JAVA_OPTIONS, LIGHT_COMPILER)
