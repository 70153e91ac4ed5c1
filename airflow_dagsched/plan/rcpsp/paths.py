"""Longest paths through a network, resources left aside."""

from __future__ import annotations

from airflow_dagsched.plan.rcpsp.project import Network, mirror_network


def measure_heads(net: Network) -> list[int]:
    """For each activity the longest path to its start."""
    found = [0] * len(net)
    for at in net.order:
        found[at] = max((found[before] + net.durations[before] for before in net.above[at]), default=0)
    return found


def measure_tails(net: Network) -> list[int]:
    """For each activity the longest path from its end."""
    return measure_heads(mirror_network(net))
