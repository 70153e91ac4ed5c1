"""Which of Java's compilers the processes of an application use."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_dagsched.plan.plan_types import Group

SHORT_S = 300.0
LIGHT_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java's quick compiler alone. The thorough one takes a third of all processor time of an application of a few
minutes on a few cores, which does not run its code often enough to earn that back; a long one does.

With the room for its code that Java has with both. Alone the quick one gets 48 MB: an application that stays for more
than three runs of twenty steps fills it, throws code away and compiles it again, a sixth of each run after that.
"""
DRIVER, EXECUTOR = "spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"


def choose_compiler(group: Group, *names: str) -> Mapping[str, str]:
    """The settings ``names`` of Java options, for an application of ``group``."""
    return dict.fromkeys(names, LIGHT_COMPILER) if group.time.compute < SHORT_S else {}
