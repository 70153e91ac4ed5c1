"""A pipelined channel has both ends in one group, or is part of a spill; spills hold nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from airflow_dagsched.plan.check.facts import Facts, Violation

Cut = tuple[str, str, str]
"""Source, output, reader."""


def check_channels(facts: Facts) -> Iterator[Violation]:
    """Spills cover exactly the pipelined channels between groups."""
    cut = _cut(facts)
    spilled = Counter((spill.src, spill.output, dst) for spill in facts.plan.spills for dst in spill.dst)
    for src, output, dst in sorted(cut - spilled.keys()):
        yield Violation("completable", f"{src}/{output}", f"pipelined to {dst!r} in another group, and no spill")
    for (src, output, dst), count in sorted(one for one in spilled.items() if one[1] > 1 or one[0] not in cut):
        if (src, output, dst) not in cut:
            yield Violation("spill", f"{src}/{output}", f"no pipelined channel to {dst!r} is cut")
        else:
            yield Violation("spill", f"{src}/{output}", f"spilled {count} times for {dst!r}")
    yield from _known(facts)


def _cut(facts: Facts) -> set[Cut]:
    return {
        (channel.src, channel.output, channel.dst) for channel in facts.edges.crossing if channel.kind == "pipelined"
    }


def _known(facts: Facts) -> Iterator[Violation]:
    size = facts.dataset_sizes() if facts.plan.spills else {}
    for spill in facts.plan.spills:
        name, told = f"{spill.src}/{spill.output}", size.get((spill.src, spill.output))
        if not spill.dst:
            yield Violation("spill", name, "has no reader")
        if told is None:
            yield Violation("spill", name, "no channel carries this dataset")
        elif spill.bytes != told:
            yield Violation("spill", name, f"has {spill.bytes} bytes, its channels carry {told}")
