"""What tasks that only wait on the triggerer have in common: they hold nothing that a task that works wants."""

from __future__ import annotations

from typing import Any

MIRROR_POOL = "default_pool"
"""Where mirrors are deferred."""

HOLDS_NOTHING: dict[str, Any] = {
    # A mirror that ends red shows what happened; what is tried again is its launch task.
    "retries": 0,
    "execution_timeout": None,
    "pool": MIRROR_POOL,  # one that doesn't count deferred tasks, see pools.py
    "priority_weight": 0,
    "weight_rule": "absolute",
}
"""Said explicitly: what is left out comes from the DAG's ``default_args``, which mean tasks that work.

Triggers get free slots of a triggerer by the weight of their task: with less than what any task has by default, ours
let those of other tasks go first.
"""
