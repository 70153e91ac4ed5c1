"""What the author asked for, and nothing else, is told: so many sentences of each kind as were asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.settings import DEFAULTS


def check_asked(facts: Facts) -> Iterator[Violation]:
    """A sentence begins with what was asked: ``apart: ...``. What it goes on to say is not read."""
    told = Counter(line.partition(":")[0] for line in facts.plan.asked)
    wanted = _asked(facts) if facts.plan.groups else Counter[str]()
    for what in sorted(told.keys() | wanted.keys()):
        if told[what] != wanted[what]:
            yield Violation("asked", what, f"is told {told[what]} times, was asked for {wanted[what]} times")


def _asked(facts: Facts) -> Counter[str]:
    settings = facts.settings
    return Counter(
        {
            "isolate": int(any(step.isolate for step in facts.dataflow.steps)),
            "apart": len(settings.apart),
            "together": len(settings.together),
            "max_steps_per_group": int(settings.max_steps_per_group < DEFAULTS.max_steps_per_group),
            "failures_per_hour": int(bool(settings.failures_per_hour and facts.plan.compared)),
            "spill_mb": int(facts.cluster.spill_mb is not None),
        }
    )
