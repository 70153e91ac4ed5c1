"""Priority weights for Airflow from the longest remaining path.

Airflow starts the queued task of greatest weight first. Its own rule counts the tasks downstream, however
short they are; the longest path to the end in seconds (the b-level) is what list scheduling goes by.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_dagsched.model.order import Successors, topological


def priority_weights(seconds: Sequence[float], successors: Successors) -> list[int]:
    """For each node of an acyclic graph a weight of at least 1, for ``weight_rule="absolute"``.

    A node has a greater weight than another exactly if its longest remaining path, itself included, is
    longer in seconds; the weights in use are 1, 2, 3 and so on, so they stay within Airflow's 32 bits.
    """
    path = list(seconds)
    for node in reversed(topological(successors)):
        path[node] += max((path[after] for after in successors[node]), default=0.0)
    weight = {length: at for at, length in enumerate(sorted(set(path)), 1)}
    return [weight[length] for length in path]
