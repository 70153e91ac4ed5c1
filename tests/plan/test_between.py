"""Steps that cannot share a resident group, and what that is worth as a bound."""

from __future__ import annotations

import random
from typing import Any

import pytest

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.lower_bound import bound_makespan
from airflow_dagsched.plan.exact.phases import bound_by_phases
from airflow_dagsched.plan.grouping.proposals.all_groupings import list_groupings
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.reasons.bounds import LongestPath, PhasesNeeded
from airflow_dagsched.plan.resident.separation import list_kept_apart
from airflow_dagsched.plan.settings import DEFAULTS
from tests.plan.drawn import drawn, standalone
from tests.plan.test_choose import streaming
from tests.plan.test_searched import optimum, resident

FAN = "a == b; a == c; a == d; b == z; c == z; d == z"


def test_what_does_not_fit_between_two_keeps_them_apart() -> None:
    """Five steps, four cores: z waits for the end of the group of a, whatever that has besides.

    a ══> b c d ══> z
    """
    facts = Problem.of(streaming(drawn(FAN, a={"runtime_s": 20}, z={"runtime_s": 30})), standalone(4), DEFAULTS)
    a, z = (facts.graph.index[name] for name in "az")
    assert [befores for befores in list_kept_apart(facts) if befores] == [[a]]
    assert list_kept_apart(facts)[z] == [a]
    bound = bound_makespan(facts, list_kept_apart(facts))
    assert bound.seconds == 8 + 20 + 8 + 30
    assert bound.reason == LongestPath(("a", "z"), frozenset(), is_parted=True)


def test_what_fits_between_two_keeps_nothing_apart() -> None:
    assert not any(list_kept_apart(Problem.of(streaming(drawn(FAN)), standalone(5), DEFAULTS)))


@pytest.mark.parametrize("seed", range(6))
def test_no_grouping_that_fits_has_both(seed: int) -> None:
    facts = Problem.of(resident(random.Random(seed)), standalone(3), DEFAULTS)
    pairs = [(node, before) for node, befores in enumerate(list_kept_apart(facts)) for before in befores]
    for home in list_groupings(facts):
        try:
            Evaluator(facts).evaluate_grouping(home)
        except DoesNotFit:
            continue
        assert all(home[node] != home[before] for node, before in pairs)


@pytest.mark.parametrize("cores", [2, 3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_phases_bound_the_optimum(seed: int, cores: int) -> None:
    facts = Problem.of(resident(random.Random(seed)), standalone(cores), DEFAULTS)
    assert (
        max(bound_makespan(facts, list_kept_apart(facts)).seconds, bound_by_phases(facts).seconds)
        <= optimum(facts) + 1e-6
    )


def test_phases_of_a_fan() -> None:
    """Six of 60 s on four cores: three beside a, three beside z; or some of them alone, in between.

    a ══> b c d e f g ══> z
    """
    names = "bcdefg"
    edges = "; ".join(f"a == {name}; {name} == z" for name in names)
    steps: dict[str, Any] = {name: {"runtime_s": 60} for name in names}
    flow = streaming(drawn(edges, **steps, a={"runtime_s": 1}))
    facts = Problem.of(flow, standalone(4), DEFAULTS)
    assert bound_by_phases(facts).seconds == 8 + 60 + 8 + 60
    assert bound_by_phases(facts).reason == PhasesNeeded(("z",))
