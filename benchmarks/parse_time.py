"""Parse time of a dataflow with the planner against the same DAG of plain operators, and what the import costs.

::

    step  0   1   2 ...  9      ten chains side by side; most steps read
          |   |   |      |      their left neighbour's chain, too
         10  11  12 ... 19
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fresh import cpu_seconds

CHAINS = 10
AIRFLOW = """
import airflow.sdk
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
airflow.sdk.task.branch  # as in any DAG file that writes @task: the first look-up loads all decorators there are
"""
OURS = "from airflow_dagsched import SparkDataflow, SparkSqlStep, Table\nairflow.sdk.task.spark_step"
EDGES = f"""
def above(i):
    direct = [i - {CHAINS}] if i >= {CHAINS} else []
    return direct + [i - {CHAINS} - 1] * (i % {CHAINS**2} > {CHAINS} and i % {CHAINS} > 0)
"""
PLANNED = """
from airflow.sdk import DAG, task
from airflow_dagsched import SparkDataflow
with DAG("parsed"), SparkDataflow("flow", work_dir="/tmp/flow"):
    @task.spark_step
    def work(spark, rows=None, others=None):
        return spark.range(1)
    made = []
    for i in range({steps}):
        made.append(work.override(task_id=f"step_{{i}}")(*[made[j] for j in above(i)]))
"""
PLAIN = """
from airflow.sdk import DAG
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
with DAG("parsed"):
    made = []
    for i in range({steps}):
        made.append(SparkSubmitOperator(task_id=f"step_{{i}}", application="step.py"))
        made[i].set_upstream([made[j] for j in above(i)])
"""


@dataclass(frozen=True, slots=True)
class Parse:
    """Processor seconds (medians) of one size, imports of Airflow and its Spark provider left out."""

    steps: int
    plain_s: float
    planned_s: float

    @property
    def added_s(self) -> float:
        return self.planned_s - self.plain_s


def parse_time(steps: int, repetitions: int) -> Parse:
    """Parse a DAG file of so many steps, written in both ways."""
    seconds = {name: _parse(EDGES + text.format(steps=steps), repetitions) for name, text in _TEXTS.items()}
    return Parse(steps, **seconds)


def import_time(repetitions: int) -> float:
    """Processor seconds of importing what a DAG file needs of us, beyond Airflow and its Spark provider."""
    return cpu_seconds(AIRFLOW, OURS, repetitions)


_TEXTS = {"plain_s": PLAIN, "planned_s": PLANNED}


def _parse(text: str, repetitions: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "parsed.py")
        file.write_text(text)
        return cpu_seconds(AIRFLOW, f"import runpy\nrunpy.run_path({str(file)!r})", repetitions)
