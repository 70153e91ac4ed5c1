"""Pruning: leaving out the partitions, steps and workers that a group does not need.

    partition  one that cannot match the condition on its source: ``where=``, the run's, the step's own SQL
    step       one that does no work without input, and has none
    worker     one that owns no needed partition, and that no step is pinned to
    instance   one of a step's copies to which no rows come

After Hazelcast Jet's partition, processor and member pruning (its designs 025-*), recast on Spark. What cannot be
proved to be without use stays, and the reason for either is a value. ``mode``:

    auto       conditions and the analysis of the dataflow; a worker goes with all that is on it (as Jet ended)
    declared   workers by conditions alone: each source must have one (Jet's lightweight way)
    analysed   workers by looking at the dataflow: any, if its steps do no work without input and broadcast nothing
    False      nothing is left out
"""

from airflow_dagsched.plan.prune.apply import prune, remaining, select_all, sources_left, trim
from airflow_dagsched.plan.prune.asked import Asked, interval_names
from airflow_dagsched.plan.prune.layout import Lister, list_stored

__all__ = [
    "Asked", "Lister", "interval_names", "list_stored", "prune", "remaining", "select_all", "sources_left", "trim",
]  # fmt: skip
