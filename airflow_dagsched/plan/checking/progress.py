"""How far the run of a plan has come is what its state says: without one, everything is still planned.

finished ──> running ──> planned      what has begun has all groups above it finished
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation


def check_progress(facts: Facts) -> Iterator[Violation]:
    """A group that runs, or has finished, does so by the state, and so do those it takes from."""
    if all(group.progress == "planned" for group in facts.plan.groups):
        return
    # Finished counts more, of a state that names a group as both.
    told = {"finished": set(facts.state.finished), "running": set(facts.state.running) - set(facts.state.finished)}
    now = {group.id: group.progress for group in facts.plan.groups}
    for name, progress in now.items():
        if progress != "planned" and name not in told[progress]:
            yield Violation("progress", name, f"is {progress} by the plan, not by the state it is checked with")
    for at, group in enumerate(facts.plan.groups):
        if group.progress != "planned":
            for above in sorted(facts.units[unit] for unit in facts.edges.above[at]):
                if now.get(above, "finished") != "finished":  # ordinary tasks have no progress in the plan
                    text = f"is {group.progress}, but {above!r}, which it takes from, is {now[above]}"
                    yield Violation("progress", group.id, text)
