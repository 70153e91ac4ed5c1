"""A group that is too much for one application, at launch: cut where the planner cuts it.

    a ═1 MB═> b ═1 MB═> c ═10 GB═> d      any three fit: {a} {b c d} spills 1 MB, {a b c} {d} would spill 10 GB

Parts run one after another, as applications of one launch task, so the planner is asked for one application at a time:
what it then predicts is what they take, starts, spills and all. Bytes and times are those of the history.

Where too little is free now, a standalone cluster is waited for, unless parts fit that end hardly later than all of it
would on the idle cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DagschedError, DoesNotFit, InvalidInput
from airflow_dagsched.launch.planning.facts import Facts, narrow_to_steps, put_parts, remove_pins
from airflow_dagsched.launch.planning.plan_run import plan_run
from airflow_dagsched.model.cluster import Cluster, make_idle

Unit = tuple[str, ...]
"""Steps that no cut separates: one, or those of a repeat block."""
REUSED_S = 0.001
"""Runtime of a step whose rows are found as they were committed: next to nothing (0: not declared)."""


class Cut(Struct, frozen=True):
    """Parts, in the order in which they are submitted, and what the planner expects of them."""

    parts: tuple[Unit, ...]
    makespan_s: float
    spilled_bytes: int

    @property
    def rank(self) -> tuple[float, int, int]:
        """The least is the best: the first to end, then the least spilled, then the most even."""
        return self.makespan_s, self.spilled_bytes, max(map(len, self.parts))


@dataclass(eq=False, repr=False)
class RunsInParts(DagschedError):
    """Too little is free for an application, and nobody needs to wait for more."""

    cut: Cut
    whole_s: float
    """What it would take at once, on the idle cluster."""

    def __str__(self) -> str:
        expected = f"in parts it is to take {self.cut.makespan_s:.0f} s, on the idle cluster {self.whole_s:.0f} s"
        return f"cut into {len(self.cut.parts)} applications, one after another: too little is free now, and {expected}"


def find_parts_for_now(facts: Facts, steps: Iterable[str], whole_s: float) -> RunsInParts | None:
    """Parts of ``steps``, in topological order, that what is free now has room for; None where waiting is better.

    :param whole_s: what all together take on the idle cluster.
    """
    try:
        cut = cut_group([(step,) for step in steps], facts, facts.cluster)
    except DoesNotFit:
        return None
    # Others may leave at any moment: so much longer may it take, and no more.
    most = (1 + facts.settings.replan_margin) * whole_s
    return RunsInParts(cut, whole_s) if len(cut.parts) > 1 and cut.makespan_s <= most else None


def cut_group(units: Sequence[Unit], facts: Facts, room: Cluster | None = None, most_steps: int | None = None) -> Cut:
    """How the planner runs ``units``, in topological order, one application at a time.

    :param room: what may be taken; None: all there is, once nobody else is on it.
    :param most_steps: of one part; None: as many as the author allows.
    Raises ``DoesNotFit`` where it finds no parts that all fit.
    """
    room = room or make_idle(facts.cluster)
    planned = plan_run(_allow_cuts(facts, tuple(chain.from_iterable(units)), room, most_steps))
    groups = sorted(planned.plan.groups, key=lambda group: group.start_s)
    part_of = {step: at for at, group in enumerate(groups) for step in group.steps}
    parts = [tuple(step for unit in units for step in unit if part_of[step] == at) for at in range(len(groups))]
    return Cut(tuple(parts), planned.plan.makespan_s, sum(spill.bytes for spill in planned.plan.spills))


def cut_too_large(facts: Facts) -> Facts:
    """The facts with the parts of each group that the idle cluster cannot hold, as its launch submits them."""
    try:
        # The usual case: what lacks is only not free now.
        plan_run(remove_pins(replace(facts, cluster=make_idle(facts.cluster))))
    except DoesNotFit:
        parts = {group.id: _cut_if_too_large(facts, group.steps) for group in facts.groups or ()}
    except InvalidInput:  # no groups that a plan may have: each launch plans its own
        return facts
    else:
        return facts
    return put_parts(facts, {name: cut for name, cut in parts.items() if len(cut) > 1})


def _cut_if_too_large(facts: Facts, steps: Unit) -> tuple[Unit, ...]:
    try:
        plan_run(replace(remove_pins(narrow_to_steps(facts, steps)), cluster=make_idle(facts.cluster)))
    except DoesNotFit:
        with suppress(DoesNotFit):  # a step of it is too large: who plans this group is told
            return cut_group([(step,) for step in steps], facts).parts
    return (steps,)


def cut_after_memory(units: Sequence[Unit], facts: Facts, memory_factor: int) -> tuple[Unit, ...]:
    """Parts of what ran out of memory, each of at most two thirds of the steps, with so many times the memory.

    Of cuts as good the most even; halves, where the planner finds none. One, where there is but one unit.
    """
    if len(units) < 2:
        return (tuple(chain.from_iterable(units)),)
    whole, larger = sum(map(len, units)), _multiply_memory(facts, memory_factor)
    longest = max(map(len, units))
    # Half of the steps; then up to two thirds, where that ends sooner.
    limits = {max(longest, ceil(whole / 2)), max(longest, min(whole - 1, ceil(2 * whole / 3)))}
    tried = (_try_cut(units, larger, limit) or _try_cut(units, facts, limit) for limit in sorted(limits))
    found = [cut for cut in tried if cut is not None]
    return min(found, key=lambda cut: cut.rank).parts if found else split_in_halves(units)


def discount_done(facts: Facts, stored: AbstractSet[str]) -> Facts:
    """The facts where steps ``stored`` have ended well and committed their rows: they take no time, a cut no spill."""
    dataflow, history = facts.dataflow, facts.history
    steps = (replace(one, runtime_s=REUSED_S) if one.id in stored else one for one in dataflow.steps)
    channels = (replace(one, kind="buffered") if one.src in stored else one for one in dataflow.channels)
    left = {step: seen for step, seen in history.measured.items() if step not in stored}
    return replace(
        facts,
        dataflow=replace(dataflow, steps=tuple(steps), channels=tuple(channels)),
        history=replace(history, measured=left),
    )


def split_in_halves(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """Two consecutive parts of about as many steps; one, where there is but one unit."""
    sizes = [len(unit) for unit in units]
    cuts = range(1, len(units))
    # Of two cuts as good, the earlier: equal groups are cut alike.
    at = min(cuts, key=lambda cut: (abs(2 * sum(sizes[:cut]) - sum(sizes)), cut), default=len(units))
    return tuple(tuple(chain.from_iterable(part)) for part in (units[:at], units[at:]) if part)


def _try_cut(units: Sequence[Unit], facts: Facts, most_steps: int) -> Cut | None:
    try:
        return cut_group(units, facts, most_steps=most_steps)
    # A list that stays together may be longer than a part is to be.
    except (DoesNotFit, InvalidInput):
        return None


def _allow_cuts(facts: Facts, steps: Unit, room: Cluster, most_steps: int | None) -> Facts:
    """Facts of these steps alone, on any workers of ``room``, in groups that the planner chooses."""
    alone, wanted = remove_pins(narrow_to_steps(facts, steps)), facts.settings
    settings = replace(
        alone.settings,
        applications=1,
        apart=_narrow_lists(wanted.apart, steps),
        together=_narrow_lists(wanted.together, steps),
        max_steps_per_group=most_steps or wanted.max_steps_per_group,
    )
    return replace(alone, settings=settings, groups=None, cluster=room)


def _narrow_lists(lists: Iterable[Sequence[str]], steps: Unit) -> tuple[tuple[str, ...], ...]:
    inside = set(steps)
    kept = (tuple(name for name in names if name in inside) for names in lists)
    # One step is never apart from, or together with, itself.
    return tuple(names for names in kept if len(names) > 1)


def _multiply_memory(facts: Facts, factor: int) -> Facts:
    default = facts.settings.step_memory_mb
    steps = (replace(step, memory_mb=(step.memory_mb or default) * factor) for step in facts.dataflow.steps)
    return replace(facts, dataflow=replace(facts.dataflow, steps=tuple(steps)))
