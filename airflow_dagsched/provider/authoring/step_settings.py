"""Which arguments of an Airflow task a step takes.

A mirror is handed to the triggerer as its launch task runs, and ends there: what a worker does for a task nobody does
for it. Of its callbacks Airflow calls the one of failures alone (``_execute_task_callbacks`` in its DAG processor).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_dagsched.provider.spec.hints import SPARKS_WORDS, suggest_name
from airflow_dagsched.provider.spec.step_declaration import Declared
from airflow_dagsched.provider.wiring.launch import SET_BY_US, list_launch_settings

DECLARED = frozenset(Declared.__struct_fields__) - {"rule"}
HONOURED = frozenset({
    "dag", "default_args", "doc", "doc_json", "doc_md", "doc_rst", "doc_yaml", "inlets", "on_failure_callback",
    "outlets", "owner", "params", "task_display_name", "task_group", "task_id", "trigger_rule",
})  # fmt: skip
"""What a mirror does as any task does. (``params`` are all there: the DAG's among them.)"""
INSTEAD = {
    "conf": "is the dataflow's: SparkDataflow(conf=...); application={...} has settings of one step",
    "do_xcom_push": "has no effect: what a step returns is its XCom, and cannot be kept back",
    "map_index_template": "has no effect: steps are not mapped",
    "multiple_outputs": "has no effect: return a dict of named DataFrames, and take them by name",
    "on_skipped_callback": "is called for no step: Airflow calls on_failure_callback alone for what a triggerer ends",
    "on_success_callback": "is called for no step: Airflow calls on_failure_callback alone for what a triggerer ends; "
    "put a task below the step, or set it on SparkDataflow(...) for the launch task",
    **SPARKS_WORDS,
}
LAUNCH_TASK = "belongs to the launch task: set it on SparkDataflow(...)"
NEITHER = "is no argument of a step"


def find_step_mistake(arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """Name and rule of the first of a step's ``arguments`` that the author gave it and no mirror honours."""
    inherited, own = _collect_inherited(arguments), arguments.get("default_args") or {}
    # Airflow hands every task the default_args of DAG and task group: what is in there beside those is the step's own.
    for name, value in own.items():
        if name not in inherited or inherited[name] != value:
            return "default_args", "are a dataflow's or a DAG's: give the step its arguments one by one"
    # The DAG's params are among the arguments, too; their source tells.
    if any(getattr(param, "source", "") == "task" for _, param in (arguments.get("params") or {}).items()):
        return "params", LAUNCH_TASK
    # Inherited values are no mistake of the step: default_args mean the author's ordinary tasks as well.
    for name, value in arguments.items():
        if name not in HONOURED and not (name in inherited and inherited[name] == value):
            return name, _explain_refusal(name)
    return None


def _collect_inherited(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The ``default_args`` of DAG and task group: they mean tasks that work."""
    above = (arguments.get("dag"), arguments.get("task_group"))
    return {name: value for each in above if each is not None for name, value in each.default_args.items()}


def _explain_refusal(name: str) -> str:
    if name in INSTEAD:
        return INSTEAD[name]
    if name in list_launch_settings() and name not in SET_BY_US:
        return LAUNCH_TASK
    hint = suggest_name(name, DECLARED | HONOURED)
    return f"{NEITHER}{f'; {hint}' if hint else ''}"
