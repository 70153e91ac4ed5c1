"""Steps with nothing to do: which of them are not even called, and how they end.

(nothing) ──> a ──> b ──> count      all but count have nothing to do; it runs, and needs b's columns:
          └─> c                      a and b are called, their rows are none; c is not
"""

from __future__ import annotations

from collections.abc import Iterable

from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.manifest import StepSpec


def find_uncalled(steps: Iterable[StepSpec]) -> frozenset[str]:
    """Pruned steps that nobody needs, not even for an empty input; ``steps`` in topological order."""
    found: set[str] = set()
    wanted: set[str] = set()
    # From the last: whether a step is wanted is known once all that read from it are.
    for spec in reversed(tuple(steps)):
        if spec.pruned and spec.id not in wanted:
            found.add(spec.id)
        else:
            wanted.update(each.step for each in spec.inputs)
    return frozenset(found)


def end_uncalled(steps: Iterable[StepSpec]) -> dict[str, StepDone]:
    """How the uncalled ones end."""
    known = tuple(steps)
    gone = find_uncalled(known)
    return {spec.id: StepDone(spec.id, "pruned", reason=spec.pruned) for spec in known if spec.id in gone}


def has_no_rows(done: StepDone) -> bool:
    """Whether the datasets of a step that has ended are known to hold no row.

    A pruned step with rows is one that nobody reads.
    """
    return done.state == "pruned" or (done.state in ("success", "reused") and done.rows == 0)
