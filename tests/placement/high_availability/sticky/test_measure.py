"""What counts as better, part by part: the first in which two assignments differ decides."""

from __future__ import annotations

import pytest

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.facts import gather_facts
from airflow_dagsched.placement.high_availability.prior import Prior, read_prior
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.sticky.measure import is_less
from airflow_dagsched.placement.high_availability.values import Worker
from tests.placement.high_availability.simulated import stateful, stateless

FACTS = gather_facts(
    [*stateful(4), *stateless(1)],
    [Worker(f"w{at}", tags={"rack": f"r{at // 3}"}) for at in (1, 2, 3, 4)],
    {},
    Settings(num_standbys=1, spread_tags=("rack",)),
)


def held(active: str, standby: str) -> Prior:
    """Workers of s0/0 ... s0/3 and f/0, and of the standbys of the first four; 0: nobody."""
    names = [*(f"s0/{at}" for at in range(4)), "f/0"]
    made = Assignment(
        active={name: f"w{at}" for name, at in zip(names, active, strict=True)},
        standby={name: (f"w{at}",) for name, at in zip(names, standby, strict=False) if at != "0"},
    )
    return read_prior(gather_facts(FACTS.instances, FACTS.workers, {}, FACTS.settings, made))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(("11111", "3333"), ("12341", "3410"), id="no standby missing"),
        pytest.param(("12341", "2143"), ("11341", "3412"), id="actives level"),
        pytest.param(("12341", "3331"), ("12341", "2143"), id="other racks"),
        pytest.param(("12341", "3412"), ("12341", "3312"), id="copies level"),
        pytest.param(("11231", "3442"), ("11231", "3342"), id="failures cheap"),
        pytest.param(("12344", "3412"), ("11344", "3412"), id="actives before all that is active"),
    ],
)
def test_what_is_better(better: tuple[str, str], worse: tuple[str, str]) -> None:
    assert is_less(FACTS, held(*better), held(*worse))
    assert not is_less(FACTS, held(*worse), held(*better))
    assert not is_less(FACTS, held(*worse), held(*worse))
