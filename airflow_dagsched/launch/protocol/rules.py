"""Airflow's trigger rules as one table, for steps whose upstreams end inside one Spark application.

States are Airflow's: success, failed, skipped, upstream_failed. The outcome of a rule follows
``airflow.ti_deps.deps.trigger_rule_dep`` of Airflow 3.3; a test compares the two on all combinations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Literal

Outcome = Literal["run", "skipped", "upstream_failed"]

# A step whose old result counts, or that has nothing to do, has done its work: those below it run.
UPSTREAM_STATE = {"reused": "success", "pruned": "success"}
"""Step states that Airflow does not have, as a trigger rule sees them."""


def decide_outcome(rule: str, states: Collection[str]) -> Outcome:
    """What becomes of a step with ``rule`` once its upstreams ended in ``states``.

    Raises ``KeyError`` for a rule that is not in ``RULES``.
    """
    seen = Counter(UPSTREAM_STATE.get(state, state) for state in states)
    return RULES[rule](seen, sum(seen.values()))


def _judge_all_success(seen: Counter[str], total: int) -> Outcome:
    if seen["failed"] or seen["upstream_failed"]:
        return "upstream_failed"
    return "skipped" if seen["skipped"] else "run"


def _judge_all_failed(seen: Counter[str], total: int) -> Outcome:
    return "skipped" if seen["success"] or seen["skipped"] else "run"


def _judge_all_done(seen: Counter[str], total: int) -> Outcome:
    return "run"


def _judge_one_success(seen: Counter[str], total: int) -> Outcome:
    # Airflow runs a task without upstreams whatever its rule says.
    if seen["success"] or not total:
        return "run"
    if seen["skipped"] == total:
        return "skipped"
    return "upstream_failed"


def _judge_one_failed(seen: Counter[str], total: int) -> Outcome:
    return "run" if seen["failed"] or seen["upstream_failed"] or not total else "skipped"


def _judge_one_done(seen: Counter[str], total: int) -> Outcome:
    return "run" if seen["success"] or seen["failed"] or not total else "skipped"


def _judge_none_failed(seen: Counter[str], total: int) -> Outcome:
    return "upstream_failed" if seen["failed"] or seen["upstream_failed"] else "run"


def _judge_none_failed_min_one_success(seen: Counter[str], total: int) -> Outcome:
    if seen["failed"] or seen["upstream_failed"]:
        return "upstream_failed"
    return "skipped" if total and seen["skipped"] == total else "run"


def _judge_none_skipped(seen: Counter[str], total: int) -> Outcome:
    return "skipped" if seen["skipped"] else "run"


def _judge_all_skipped(seen: Counter[str], total: int) -> Outcome:
    return "run" if seen["skipped"] == total else "skipped"


def _judge_all_done_min_one_success(seen: Counter[str], total: int) -> Outcome:
    if seen["skipped"]:
        return "skipped"
    return "run" if seen["success"] or not total else "upstream_failed"


RULES: dict[str, Callable[[Counter[str], int], Outcome]] = {
    "all_success": _judge_all_success,
    "all_failed": _judge_all_failed,
    "all_done": _judge_all_done,
    "one_success": _judge_one_success,
    "one_failed": _judge_one_failed,
    "one_done": _judge_one_done,
    "none_failed": _judge_none_failed,
    "none_failed_min_one_success": _judge_none_failed_min_one_success,
    "none_skipped": _judge_none_skipped,
    "all_skipped": _judge_all_skipped,
    "all_done_min_one_success": _judge_all_done_min_one_success,
    "always": _judge_all_done,
}
