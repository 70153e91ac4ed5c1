"""The table of trigger rules against Airflow's own dependency check, on every combination of three upstreams."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations_with_replacement
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from airflow.ti_deps.dep_context import DepContext
from airflow.ti_deps.deps.trigger_rule_dep import TriggerRuleDep
from airflow.utils.state import TaskInstanceState

from airflow_dagsched.launch.protocol.rules import RULES, decide_outcome

STATES = ("success", "failed", "skipped", "upstream_failed")


class Instance:
    """What Airflow's check looks at in a task instance; it keeps the state it is given."""

    map_index = -1
    dag_id, run_id = "d", "r"

    def __init__(self, task: Any, state: str | None = None) -> None:
        self.task, self.task_id = task, task.task_id
        self.state = TaskInstanceState(state) if state else None

    def set_state(self, state: Any, session: Any = None) -> bool:
        self.state = state
        return True

    def get_dagrun(self, session: Any = None) -> Any:
        return SimpleNamespace(dag=self.task.dag)


def airflow_says(rule: str, states: tuple[str, ...]) -> str:
    """Outcome by Airflow's scheduler: the state it sets at once, else whether the task may run."""
    with DAG("d", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        below = EmptyOperator(task_id="below", trigger_rule=rule)
        for at, _ in enumerate(states):
            EmptyOperator(task_id=f"above{at}") >> below
    tasks = DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_dict
    context = DepContext(flag_upstream_failed=True)
    context.finished_tis = [Instance(tasks[f"above{at}"], state) for at, state in enumerate(states)]  # type: ignore[assignment]
    instance: Any = Instance(tasks["below"])
    statuses = list(TriggerRuleDep()._get_dep_statuses(instance, context, session=None))  # type: ignore[arg-type]
    if instance.state is not None:
        return str(instance.state.value)
    return "run" if all(status.passed for status in statuses) else "waits"


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_as_airflow_has_it(rule: str) -> None:
    """With none, one, two and three upstreams in any states."""
    for count in range(4):
        for states in combinations_with_replacement(STATES, count):
            assert (states, decide_outcome(rule, states)) == (states, airflow_says(rule, states))


def test_reused_and_pruned_count_as_success() -> None:
    assert decide_outcome("all_success", ["reused", "pruned"]) == "run"
