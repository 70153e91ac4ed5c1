"""The choice among groupings: from cutting nothing to one application per step, whichever ends first.

Compared first: the coarsest completable groups, as few groups as the rules allow, and one application per
step. Besides, others in between (of few steps, all), while the budget lasts: it counts steps and edges simulated, not
seconds, so the choice is the same on every machine. The search ends early at a plan that the lower bound proves as
soon as any; up to 200 steps the three above are priced even then: none of them costs less, nor holds less as soon.

Groupings are compared by what the launches in the order of the longest path take; then those that could end first
in another order, the best few and the three above, are compared by what each takes in its best order. Last, the
best is tried with other lists inside its groups: ``Choice.given`` has the order that was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_dagsched.plan.cost import Priced
from airflow_dagsched.plan.exact.groupings import groupings
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.groups import coarsest
from airflow_dagsched.plan.search.choice import Choice
from airflow_dagsched.plan.search.contract import contractions
from airflow_dagsched.plan.search.moves import improve
from airflow_dagsched.plan.search.refine import components, refinements
from airflow_dagsched.plan.search.relist import relist
from airflow_dagsched.plan.search.segments import MANY, segmentations
from airflow_dagsched.plan.work import tails

BUDGET = 8_000
"""Steps and edges that may be simulated besides the first groupings."""
RESIDENT_BUDGET = 150_000
"""The same where steps stay resident: there grouping decides what fits at all."""
SOME = 3
"""Groupings of however many resident steps that are simulated: the coarsest one, the cheapest runs and their parts."""
UNITS = 3
"""A unit by which a run of an order grows costs so much less than a step that is simulated."""
FEW = 6
"""Steps of which all groupings are looked at: some 200."""
COARSEST, FEWEST, PER_STEP = "cutting only what must be cut", "as few groups as can be", "one application per step"
PARTS, ALL = "parts that no edge joins apart", "all groupings there are"
SHOWN = 200
"""Steps for which one application per step is priced even if it cannot end sooner: people ask what a plan saves, and
of two that end together the one that holds fewer core-seconds is better. Of more that would take too long."""


def choose(given: Given) -> Choice:
    """The best grouping found; raises ``DoesNotFit`` where not even single steps fit."""
    graph = given.graph
    stages, home = coarsest(graph, given.rules)
    choice = Choice(given, _budget(given), stages)
    choice.anchors = {tuple(home), tuple(graph.loop)}
    choice.offer(COARSEST, home)
    if choice.best is None or len(choice.best.members) > 1:
        choice.anchors.add(tuple(choice.fewest()[1]))
        choice.offer(FEWEST, choice.fewest()[1])
    _look(choice, _finer(choice, home))
    if _many_stay(given):
        _look(choice, _in_runs(choice))
    few = len(graph.steps) <= SHOWN
    if choice.best is None or (choice.lacks(graph.loop) and (few or not _beats_per_step(choice.best, given))):
        choice.offer(PER_STEP, graph.loop)
    if choice.chosen == PER_STEP and choice.proved:  # as soon, but holds less: what starts less often may hold less yet
        choice.offer(PARTS, components(graph, choice.fewest()[1]))
    _look(choice, _coarser(choice))
    if choice.open and not _nothing_to_gain(choice):
        _change(choice)
    choice.decide()
    if choice.best is None:
        assert choice.refused is not None
        raise choice.refused
    relist(choice)
    return choice


def _budget(given: Given) -> int:
    """Many resident steps: less for each, but enough for some groupings of them."""
    if not any(given.work.streaming):
        return BUDGET
    many = max(1.0, len(given.graph.steps) / MANY)
    return max(int(RESIDENT_BUDGET / many**2), SOME * (len(given.graph.ids) + len(given.graph.datasets)))


def _many_stay(given: Given) -> bool:
    """Whether runs of an order are told to be better than single steps before those are priced at all."""
    return any(given.work.streaming) and len(given.graph.steps) > MANY


def _change(choice: Choice) -> None:
    """All groupings of few steps; else small changes to the best so far."""
    if len(choice.given.graph.steps) > FEW:
        improve(choice)
        return
    for home in groupings(choice.given):
        if choice.open:
            choice.offer(ALL, home)


def _look(choice: Choice, others: Iterator[tuple[str, Sequence[int]]]) -> None:
    """Price these while that may help."""
    while choice.open and not _nothing_to_gain(choice):
        what, home = next(others, ("", None))
        if home is None:
            return
        choice.offer(what, home)


def _finer(choice: Choice, home: Sequence[int]) -> Iterator[tuple[str, Sequence[int]]]:
    """From the coarse groupings on."""
    given = choice.given
    few = choice.fewest()[1]
    bases = (few, home) if few != home else (few,)
    for base in bases:
        yield PARTS, components(given.graph, base)
    for base in bases:
        for what, finer in refinements(given, base):
            yield what, finer
            yield what, components(given.graph, finer)


def _coarser(choice: Choice) -> Iterator[tuple[str, Sequence[int]]]:
    """From single steps on."""
    given = choice.given
    if any(given.work.streaming) and not _many_stay(given):
        yield from _in_runs(choice)
    for merged in contractions(given.graph.loop, given):
        yield "steps merged along the longest paths", merged
        yield "steps merged along the longest paths", components(given.graph, merged)


def _in_runs(choice: Choice) -> Iterator[tuple[str, Sequence[int]]]:
    """Resident steps, as many at once as fit."""
    for runs, looked in segmentations(choice.given, choice.fewest()[1]):
        choice.budget -= looked // UNITS
        yield "runs of an order", runs
        yield "runs of an order", components(choice.given.graph, runs)


def _nothing_to_gain(choice: Choice) -> bool:
    """One batch group that lacks nothing, or has all cores: no other grouping has more, and all start more."""
    best, given = choice.best, choice.given
    if best is None or len(best.members) != 1 or len(best.home) > len(given.graph.steps):
        return False
    shape = next(iter(best.shapes.values()))
    if shape.residency == "all":
        return False
    if any(need.cores > 1 for need in given.work.needs) and shape.inside.compute_s > max(given.work.tail):
        return False  # Cores of a container are left over that another one could use.
    whole = shape.held_cores >= sum(worker.free_cores for worker in given.work.workers)
    return whole or (not shape.short_of and shape.inside.steps < given.settings.slots)


def _beats_per_step(best: Priced, given: Given) -> bool:
    """Whether one application per step cannot end sooner: by its core-seconds, or by its longest path."""
    graph, work, start = given.graph, given.work, given.cluster.application_start_s
    held = sum(
        need.cores * (start + seconds * step.parallelism)
        for need, seconds, step in zip(work.needs, work.runtime, graph.steps, strict=False)
    )
    cores = sum(worker.free_cores for worker in work.workers)
    if best.cost.makespan_s * cores <= held:
        return True
    seconds = [least + start if graph.is_step(node) else least for node, least in enumerate(work.least)]
    return best.cost.makespan_s <= max(tails(graph, seconds))
