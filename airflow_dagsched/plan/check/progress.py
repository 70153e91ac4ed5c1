"""How far the run of a plan has come is what its state says: without one, everything is still planned.

finished ──> running ──> planned      what has begun has all groups above it finished
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.check.facts import Facts, Violation


def check_progress(facts: Facts) -> Iterator[Violation]:
    """A group that runs, or has finished, does so by the state, and so do those it takes from."""
    if all(group.progress == "planned" for group in facts.plan.groups):
        return
    told = {"finished": set(facts.state.finished), "running": set(facts.state.running) - set(facts.state.finished)}
    now = {group.id: group.progress for group in facts.plan.groups}
    for name, progress in now.items():
        if progress != "planned" and name not in told[progress]:
            yield Violation("progress", name, f"is {progress} by the plan, not by the state it is checked with")
    for src, dst in sorted(facts.edges.units):
        if now.get(dst, "planned") != "planned" and now.get(src, "finished") != "finished":
            yield Violation("progress", dst, f"is {now[dst]}, but {src!r}, which it takes from, is {now[src]}")
