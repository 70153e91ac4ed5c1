"""``python -m tests.dags.play DAG_FILE [DATE [DAG_ID]]``: one ``dag.test()``.

Prints how each task ended and what it told, as JSON, last. A process of its own, since Airflow reads its home folder
when it is imported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pendulum
from airflow.dag_processing.dagbag import DagBag


def main(file: str, date: str = "", dag_id: str = "") -> None:
    """Run the file's DAG for ``date``, an ISO 8601 day."""
    dags = DagBag(Path(file), collect_dags=False).process_file(file, only_if_updated=False)
    (dag,) = (each for each in dags if dag_id in ("", each.dag_id))
    run = dag.test(logical_date=pendulum.parse(date) if date else None)
    ended = run.get_task_instances()
    states = {ti.task_id: str(ti.state) for ti in ended}
    told = {ti.task_id: ti.xcom_pull(task_ids=ti.task_id) for ti in ended}
    print("\n" + json.dumps({"state": str(run.state), "tasks": states, "told": told}, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
