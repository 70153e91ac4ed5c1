"""What a run has left, and until when: its plan part-way through, planned anew as each launch begins.

    launch_a ─ over, 20 s late ─┐
    launch_b ─ running 5 s ─────┼─ replan ──> launch_b, c, d are left, end in 34 s, 12 s later than planned
    launch_c ─ begins now ──────┘             launch_d: resized

Which step is in whose launch task is the DAG's: only times, sizes and places are foreseen anew. On the cluster as if
nobody else were on it: what others hold now they may have left by then. The launch itself asks what is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.launch.planning.plan_run import plan_run
from airflow_dagsched.launch.protocol.feed import GREEN, Feed, has_ended_well
from airflow_dagsched.model.codec import digest_dataflow
from airflow_dagsched.model.ranges import Quantity, Value
from airflow_dagsched.model.state import Measured, State
from airflow_dagsched.plan.grouping.coarsest import Grouped
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.reasons.changes import Change
from airflow_dagsched.plan.replan.remaining_run import keep_groups, replan_run

NEVER_REGROUPED = 1.0
"""A margin that no gain exceeds."""


class Outlook(Value, frozen=True, kw_only=True):
    """What one launch of a run foresaw, for the next one to compare with."""

    round: str
    """Of the run, or of what it became by a clear."""
    ends: Quantity
    """When all was to end, seconds since 1970, as its first launch foresaw it."""
    plan: Plan
    """The whole run's, as its last launch foresaw it."""


class Ahead(Struct, frozen=True):
    """What a launch foresees as it begins."""

    left: tuple[str, ...]
    """Groups, in the order of their ends; those that run among them."""
    left_s: float
    later_s: float
    """Than the run's first launch foresaw; negative: sooner."""
    changes: tuple[Change, ...]
    """Since the last launch."""
    outlook: Outlook

    def lines(self) -> Iterator[str]:
        """One on what is left, and one on what is different, if anything is."""
        late = round(self.later_s)
        than = f", {abs(late)} s {'later' if late > 0 else 'sooner'} than planned" if late else ", as planned"
        yield f"what is left ends in {self.left_s:.0f} s{than}: {', '.join(self.left)}"
        if self.changes:
            yield f"expected otherwise than before: {'; '.join(f'{one.group} {one.what}' for one in self.changes)}"


class Run(Struct, frozen=True):
    """What a launch knows of its run."""

    facts: Facts
    """On the cluster as if nobody else were on it."""
    groups: Sequence[Grouped]
    """The launch tasks."""
    round: str
    now: float
    """Seconds since 1970."""


def forecast_run(run: Run, state: State, before: Outlook | None) -> Ahead:
    """What is left of ``run`` in ``state``. ``before``: what its last launch foresaw; None: this is the first.

    Raises as ``replan_run``.
    """
    facts = run.facts
    # The plan as before the run, when no group had begun; what has since counts in the planning anew below.
    planned = before.plan if before is not None and _is_of(before, run) else _plan_before(run)
    # Airflow can't move a task to another launch task in a run that has begun.
    settings, policy = replace(facts.settings, replan_margin=NEVER_REGROUPED), facts.policy
    found = replan_run(planned, facts.dataflow, facts.cluster, state, settings, policy=policy)
    ends = run.now + found.left_s
    # A clear begins a new round: what was foreseen for the one before says nothing of this one.
    first = before.ends if before is not None and before.round == run.round else ends
    left = sorted((one for one in found.plan.groups if one.progress != "finished"), key=lambda one: one.end_s)
    outlook = Outlook(round=run.round, ends=first, plan=found.plan)
    return Ahead(tuple(one.id for one in left), found.left_s, ends - first, found.changes, outlook)


def _plan_before(run: Run) -> Plan:
    """The plan that the run's launches follow; where a group does not fit, cut."""
    facts = run.facts
    try:
        return plan_run(facts).plan
    except DoesNotFit:
        return replan_run(_make_bare_plan(run), facts.dataflow, facts.cluster, facts.history, facts.settings).plan


def price_groups(run: Run, state: State) -> float | None:
    """Seconds until all that is left of ``run`` in ``state`` ends, its groups as they are; None: that cannot be."""
    facts, history = run.facts, State(measured=state.measured, connections=state.connections)
    planned = keep_groups(_make_bare_plan(run), facts.dataflow, facts.cluster, history, facts.settings)
    if planned is None:
        return None
    found = keep_groups(planned.plan, facts.dataflow, facts.cluster, state, facts.settings)
    return None if found is None else found.left_s


def _is_of(before: Outlook, run: Run) -> bool:
    """Whether it has the launch tasks that there are: a group that did not fit was foreseen cut."""
    there, foreseen = ({one.id: frozenset(one.steps) for one in groups} for groups in (run.groups, before.plan.groups))
    same = there == foreseen
    return same and before.round == run.round and before.plan.digest == digest_dataflow(run.facts.dataflow)


def _make_bare_plan(run: Run) -> Plan:
    """The groups alone: how large, where and when is to be planned."""
    groups = (Group(id=one.id, steps=tuple(one.steps), after=tuple(one.after), reason=one.reason) for one in run.groups)
    return Plan(dataflow=run.facts.dataflow.name, digest=digest_dataflow(run.facts.dataflow), groups=tuple(groups))


def derive_state(
    mine: str, groups: Sequence[Grouped], feeds: Mapping[str, Feed], known: State, *, this_round: str, now: float
) -> State:
    """How far the run is as the launch task of group ``mine`` begins.

    :param feeds: group -> feed of its launch task. One of another round of the run counts for nothing.
    :param known: the history.
    :param this_round: as the feeds of this round have it.
    :param now: seconds since 1970.
    """
    # An earlier round's feed is still there until its launch task runs again: the worker wipes XComs, a clear does not.
    current = {name: feed for name, feed in feeds.items() if feed.try_id.round == this_round}
    # Whatever it waits for is over, in whatever way: else Airflow would not have begun it.
    over = find_upstream_groups(mine, groups) | {name for name, feed in current.items() if _is_over(feed)}
    running = {name: feed for name, feed in current.items() if not feed.final and name not in over}
    ends = [done for feed in current.values() for done in feed.steps.values()]
    sizes = {done.step: dict(done.sizes) for done in ends if done.sizes and done.state in GREEN}
    measured = {step: replace(known.measured.get(step, Measured()), stored=held) for step, held in sizes.items()}
    return replace(
        known,
        finished=tuple(sorted(over)),
        # Tried again though all its steps have ended well: it has finished, and runs nothing more.
        running=tuple(sorted({mine, *running} - over)),
        elapsed_s={name: max(0.0, now - feed.began) for name, feed in running.items() if feed.began},
        measured={**known.measured, **measured},
    )


def _is_over(feed: Feed) -> bool:
    """Whether its launch task ended well; what failed may be tried again."""
    return feed.final and all(map(has_ended_well, feed.steps.values()))


def find_upstream_groups(mine: str, groups: Iterable[Grouped]) -> set[str]:
    """Groups that ``mine`` waits for."""
    after = {group.id: group.after for group in groups}
    found: set[str] = set()
    queue = list(after[mine])
    while queue:
        name = queue.pop()
        if name in after and name not in found:
            found.add(name)
            queue += after[name]
    return found
