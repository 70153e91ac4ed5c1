"""The pass that predicts when each group starts and ends, and the plan's makespan.

A group takes, one after another: start of the application, reading what earlier groups stored, computing,
writing what later groups read. It starts once all it waits for has ended and the cluster has room for it:
first ready, first served, as Spark's own master does. Ordinary tasks take no room on the cluster.
"""

from __future__ import annotations

from msgspec.structs import replace

from airflow_dagsched.plan.bound import lower_bound
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.inside import Inside, inside_group
from airflow_dagsched.plan.queue import Span, spans
from airflow_dagsched.plan.stored import Stored, stored_bytes
from airflow_dagsched.plan.values import Group, Plan, Times

MIB = 1024 * 1024
DIGITS = 6
"""Predicted seconds are told to the microsecond: enough, and the same on every machine."""


def timed(made: Plan, given: Given) -> Plan:
    """The plan with times of its sized groups, its makespan and its lower bound, in seconds."""
    inside = {group.id: inside_group(group, given) for group in made.groups}
    stored = stored_bytes(made, given.graph.dataflow)
    times = {group.id: _times(inside[group.id], stored[group.id], given) for group in made.groups}
    found = spans(made, given, {name: time.total_s for name, time in times.items()})
    makespan = round(max((span.end_s for span in found.values()), default=0.0), DIGITS)
    return replace(
        made,
        groups=tuple(_timed(g, times[g.id], found[g.id], inside[g.id]) for g in made.groups),
        makespan_s=makespan,
        lower_bound_s=min(makespan, round(lower_bound(given), DIGITS)),
    )


def _times(inside: Inside, stored: Stored, given: Given) -> Times:
    rate = given.cluster.spill_mb_s * MIB
    return Times(
        start=given.cluster.application_start_s,
        compute=round(inside.compute_s, DIGITS),
        read=round(stored.read / rate, DIGITS),
        write=round(stored.written / rate, DIGITS),
    )


def _timed(group: Group, time: Times, span: Span, inside: Inside) -> Group:
    return replace(
        group,
        time=time,
        start_s=round(span.start_s, DIGITS),
        end_s=round(span.end_s, DIGITS),
        finish_spread_s=round(inside.spread_s, DIGITS),
    )
