"""The best of several orders, played through: never worse than first come first served where all goes as planned."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.simulate.foresee import Forecast, choose_best, make_forecast
from airflow_dagsched.plan.simulate.run import simulate_works
from airflow_dagsched.plan.simulate.values import POLICIES, Conditions, Outcome
from tests.plan.drawn import clusters, dataflows, standalone
from tests.plan.simulate.test_run import single, work

CALM = Conditions()
FIFO, FORESEEN = POLICIES["fifo"], POLICIES["foreseen"]
SLACK = 1 + 1e-9


def ends(found: Outcome) -> list[float]:
    return [end for end in found.completion_s if end is not None]


def test_what_is_later_in_any_respect_is_not_taken() -> None:
    """The second is far sooner on the mean, but later on the worst; the last is a little sooner on both."""
    assert choose_best([Forecast(0, 50, 100), Forecast(0, 10, 101), Forecast(1, 1, 1), Forecast(0, 49, 100)], 0) == 3


def test_at_a_tie_what_is_in_force_stays() -> None:
    assert choose_best([Forecast(0, 50, 100)] * 3, 1) == 1


def test_works_without_end_are_counted_apart() -> None:
    assert make_forecast([10.0, None, 20.0]) == Forecast(1, 15.0, 20.0)
    assert make_forecast([]) == Forecast(0, 0.0, 0.0)


@settings(max_examples=100, deadline=None)
@given(st.lists(dataflows(most=8), min_size=2, max_size=6), clusters())
def test_at_one_moment_no_set_of_works_ends_later_than_first_come_first_served(
    flows: list[Dataflow], cluster: Cluster
) -> None:
    """On the mean, and on the worst, whatever the dataflows."""
    works = [work(flow, cluster) for flow in flows]
    ours, theirs = (ends(simulate_works(works, cluster, CALM, policy)) for policy in (FORESEEN, FIFO))
    assert sum(ours) <= sum(theirs) * SLACK
    assert max(ours) <= max(theirs) * SLACK


def test_a_wide_launch_is_not_overtaken_for_ever() -> None:
    """It wants all 8 cores for 108 s, the others 4 for 28 s: letting them go ahead is always sooner on the mean.

    ::

        w1 ▐1st 28 s▌▐3rd▌▐5th▌ ...     at 2 s it comes, and one of the others is there: all that is left is
        w2   ▐2nd 28 s▌▐4th▌▐6th▌ ...   28 + 108 s; it is passed over no longer, then waits for what runs
    """
    cluster = standalone(4, 4)
    stream = [work(single(4, 20), cluster, at_s=14.0 * at) for at in range(60)]
    wide = work(single(1, 100, parallelism=8), cluster, at_s=2.0)
    found = simulate_works([*stream, wide], cluster, CALM, FORESEEN)
    (ours,) = (one for one in found.ran if one.work == len(stream))
    assert ours.start_s <= 2 + 28 + 108 + 28


def test_it_sees_what_comes_of_an_order() -> None:
    """Of three launches the second wants all 8 cores.

    ::

        in turn    ▐4 of 8 for 28 s▌▐8 for 308 s▌▐4 for 28 s▌    28, 336 and 364 s

        foreseen   ▐4 of 8 for 28 s▌▐8 for 308 s▌                28, 28 and 336 s
                   ▐4 of 8 for 28 s▌
    """
    cluster = standalone(4, 4)
    wanted = [(4, 20.0), (8, 300.0), (4, 20.0)]
    works = [work(single(1, seconds, parallelism=cores), cluster) for cores, seconds in wanted]
    assert [round(end) for end in ends(simulate_works(works, cluster, CALM, FORESEEN))] == [28, 336, 28]
