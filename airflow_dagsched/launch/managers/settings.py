"""Spark settings for one group of a plan: what is common, and what each cluster manager is told.

Only what the plan decides is set here; what the author sets on the dataflow wins over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from airflow_dagsched.launch.managers.executors import Executors, Submission, size_executors
from airflow_dagsched.launch.managers.kubernetes.submit import POD, make_kubernetes_submission
from airflow_dagsched.launch.managers.local.submit import make_local_submission
from airflow_dagsched.launch.managers.short_java import choose_java_options
from airflow_dagsched.launch.managers.standalone.submit import make_standalone_submission
from airflow_dagsched.launch.managers.yarn.submit import make_yarn_submission
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.settings import DEFAULTS, Settings

COMMON = {
    # Steps run side by side: by default, FIFO, the first one's stages would have all cores they can use.
    "spark.scheduler.mode": "FAIR",
    "spark.ui.showConsoleProgress": "false",
    # Else rows that are kept after a shuffle stay in its 200 partitions, and a write makes a file of each.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    # The failure of an author's function begins with the author's lines, not with those of PySpark's worker.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}


def make_submission(
    group: Group,
    cluster: Cluster,
    memory_factor: int = 1,
    *,
    exact: bool = True,
    pod: Mapping[str, Any] = POD,
    task_cores: int = 1,
    settings: Settings = DEFAULTS,
) -> Submission:
    """What spark-submit is told of ``group``.

    :param memory_factor: times the planned memory is asked for.
    :param exact: whether executors are kept on the planned workers; they are not where the plan was made for
        a cluster that is busy now, since others may be free long before those are.
    :param pod: template of executor pods, where the manager is Kubernetes.
    :param task_cores: cores that each task takes, so that as many run at once as instances were planned to.
    :param settings: those that the group was planned with.
    """
    if cluster.manager == "local":
        # Its threads are handed out, whatever cores there are: a task that wanted more of them than the connection
        # names would wait for ever.
        found, task_cores = make_local_submission(group, memory_factor), 1
    else:
        asked = size_executors(group, cluster, memory_factor, settings)
        found = _make_remote_submission(group, cluster, asked, exact=exact, pod=pod)
    cpus = {"spark.task.cpus": str(task_cores)} if task_cores > 1 else {}
    java = choose_java_options(group, cluster)
    return replace(found, conf={**COMMON, **java, **cpus, **found.conf})


def _make_remote_submission(
    group: Group, cluster: Cluster, asked: Executors, *, exact: bool, pod: Mapping[str, Any]
) -> Submission:
    if cluster.manager == "standalone":
        found = make_standalone_submission(asked, cluster, exact=exact)
    elif cluster.manager == "yarn":
        found = make_yarn_submission(asked, cluster, exact=exact)
    else:
        found = make_kubernetes_submission(asked, cluster, pod, exact=exact)
    # The plan says how many executors there are: with dynamic allocation those that idle a minute would be given back.
    driver = {"spark.driver.memory": f"{group.driver.memory_mb}m", "spark.dynamicAllocation.enabled": "false"}
    return replace(found, conf={**driver, **found.conf})
