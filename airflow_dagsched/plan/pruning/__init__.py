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

from airflow_dagsched.plan.pruning.apply import (
    count_remaining,
    narrow_sources,
    prune_groups,
    select_all,
    trim_instances,
)
from airflow_dagsched.plan.pruning.layout import Lister, list_stored
from airflow_dagsched.plan.pruning.pruning_input import PruningInput, name_interval

__all__ = [
    "Lister",
    "PruningInput",
    "count_remaining",
    "list_stored",
    "name_interval",
    "narrow_sources",
    "prune_groups",
    "select_all",
    "trim_instances",
]  # fmt: skip
