"""The judgement of a query, by the plans of the steps that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_dagsched.spark.streams.output_window import OutputWindow
from airflow_dagsched.spark.streams.plans.follow import Follower
from airflow_dagsched.spark.streams.plans.refusals import Refusal
from airflow_dagsched.spark.streams.plans.rows import Rows
from airflow_dagsched.spark.streams.plans.time_columns import TimeColumn
from airflow_dagsched.spark.streams.plans.tree import Node

PREFERRED = ("window", "end", "start", "time")
"""What tells a row's window, best first: rows of a sliding window may keep their event time, which is not its end."""


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query whose state the flow's windows bound."""

    output: OutputWindow
    reach_s: float = 0.0
    """By how much, in seconds, rows may be older than the first of the flow's windows that they are counted in."""


def judge_query(
    plans: Mapping[str, Node], window_s: float, reach_s: float, carries: bool = False
) -> JudgedQuery | tuple[Refusal, ...]:
    """Judge a query by the plans of its steps in their order, the one that writes last.

    :param reach_s: by how much, in seconds, its windows may begin before the flow's: a changed graph begins so much
        earlier.

    What is wrong is told of the first step that has it, for its readers' plans have it, too.
    """
    rows = Rows()
    for step, plan in plans.items():
        rows = Follower(window_s, carries).follow(plan)
        if refusals := (*rows.refusals, *_judge_source(rows)):
            return tuple(replace(refusal, step=step) for refusal in refusals)
    output = find_output(rows)
    if output is None:
        return (_explain_output(plans, rows, window_s),)
    if rows.reach_s > reach_s:
        return (Refusal("reaches back", step=list(plans)[-1], length_s=rows.reach_s, start_s=reach_s),)
    return JudgedQuery(output, rows.reach_s)


def find_output(rows: Rows) -> OutputWindow | None:
    """The column that tells the window of a row; None: there is none."""
    found = [column for each in rows.output if (column := rows.columns.get(each.id)) and _tells_window(column)]
    best = min(found, key=lambda column: PREFERRED.index(column.part), default=None)
    if best is None or best.part == "session":
        return None
    return OutputWindow(best.name, best.part, best.length_s if best.part == "start" else 0.0)


def _tells_window(column: TimeColumn) -> bool:
    # A start tells nothing where the length is a function's own.
    known = column.part in PREFERRED and (column.part != "start" or column.length_s > 0)
    return known and column.bounded and not column.optional


def _judge_source(rows: Rows) -> tuple[Refusal, ...]:
    return (Refusal("stream of its own"),) if rows.unmarked else ()


def _explain_output(plans: Mapping[str, Node], rows: Rows, window_s: float) -> Refusal:
    names = tuple(each.name for each in rows.output)
    return Refusal("rows without window", step=list(plans)[-1], columns=names, window_s=window_s)
