"""How groupings are searched where steps stream: what stays from start to end has to fit all at once.

batch       groups take turns on the cores: cutting costs starts and spills, and gains little
streaming   a group holds all it needs until it ends: grouping decides what fits at all, so more is looked at
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.grouping.candidates import BATCH, Strategy
from airflow_dagsched.plan.grouping.proposals.contraction import contract_longest_paths
from airflow_dagsched.plan.grouping.proposals.refinement import split_unjoined
from airflow_dagsched.plan.grouping.selection import Candidate, Selection
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.resident.chains_and_levels import cut_by_tails, join_chains
from airflow_dagsched.plan.resident.plausible import take_plausible
from airflow_dagsched.plan.resident.resident_groups import MANY, list_segmentations, share_cluster
from airflow_dagsched.plan.resident.separation import list_kept_apart

RUNS = "one group after another, each as full as fits"
RESIDENT_BUDGET = 150_000
"""Steps and edges that may be simulated, where batch has 8,000."""
SOME = 3
"""Groupings of however many resident steps that are simulated: the coarsest one, the cheapest runs and their parts."""
CHAINS, LEVELS = "chains merged along the longest path", "cut by how much is left behind a step"
UNITS = 3
"""A unit by which a run of an order grows costs so much less than a step that is simulated."""


def set_budget(problem: Problem) -> int:
    """Many resident steps: less for each, but enough for some groupings of them."""
    many = max(1.0, len(problem.graph.steps) / MANY)
    # By the square: both the number of changes and what each costs grow with the steps.
    return max(int(RESIDENT_BUDGET / many**2), SOME * (len(problem.graph.ids) + len(problem.graph.datasets)))


def propose_first(selection: Selection) -> Iterator[Candidate]:
    """Of many steps, runs of an order are better than single ones before those are evaluated at all."""
    if len(selection.problem.graph.steps) > MANY:
        yield from _propose_runs(selection)


def propose_late(selection: Selection) -> Iterator[Candidate]:
    """Runs of an order, if they have not been looked at; then what single steps become as they are merged."""
    if len(selection.problem.graph.steps) <= MANY:
        yield from _propose_runs(selection)
        yield from _propose_by_shape(selection)
    yield from BATCH.propose_late(selection)


def _propose_by_shape(selection: Selection) -> Iterator[Candidate]:
    """Chains as one, and what they become as they are merged; cuts by how much is left behind a step."""
    problem, few = selection.problem, selection.find_fewest()[1]
    for parts in cut_by_tails(problem, few):
        yield Candidate(LEVELS, parts)
        yield Candidate(LEVELS, split_unjoined(problem.graph, parts))
    chains = join_chains(problem, few, share_cluster(problem, 1.0))
    # A chain that the cores would hold if they were one worker's may be in no way to be dealt to those there are.
    with suppress(DoesNotFit):
        for merged in contract_longest_paths(chains, selection.evaluator):
            yield Candidate(CHAINS, merged)
            yield Candidate(CHAINS, split_unjoined(problem.graph, merged))


def _propose_runs(selection: Selection) -> Iterator[Candidate]:
    """Resident steps, as many at once as fit."""
    for runs, looked in list_segmentations(selection.problem, selection.find_fewest()[1]):
        # Finding runs is charged as well: many orders of many steps would cost more than evaluating what they give.
        yield Candidate(RUNS, runs, looked // UNITS)
        yield Candidate(RUNS, split_unjoined(selection.problem.graph, runs))


STREAMING = Strategy(
    list_kept_apart, set_budget, propose_first, propose_late, lambda selection: take_plausible(selection, propose_late)
)
