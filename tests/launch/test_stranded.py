"""Whether an application without executors may still get one: by who is alive now, never by who is busy."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
from airflow_dagsched.launch.escalation.stranded import Without, explain_stranded
from airflow_dagsched.launch.managers.executors import size_executors
from airflow_dagsched.launch.managers.settings import make_submission
from airflow_dagsched.model.cluster import Cluster, Free, Worker
from tests.launch.test_choose import choose, wide


def offering(manager: Any = "standalone", **slots: int) -> Cluster:
    """Workers of 4 cores; each offers a token for every slot of four but its own."""
    return Cluster(
        manager=manager,
        workers=tuple(
            Worker(
                id=name, host=name, cores=4, memory_mb=8000,
                tokens=tuple(f"not_{other}" for other in range(1, 5) if other != slot),
            )
            for name, slot in slots.items()
        ),
    )  # fmt: skip


def planned(cluster: Cluster, *pinned: str, instances: int = 2) -> Chosen:
    chosen = choose(wide(instances, pinned=pinned), cluster)
    assert chosen is not None
    return chosen


def verdict(chosen: Chosen, now: Cluster, **conf: str) -> str:
    """For the application as it was submitted."""
    told = make_submission(chosen.group, chosen.planned.cluster, exact=chosen.exact).conf
    return explain_stranded(chosen, size_executors(chosen.group, chosen.planned.cluster), {**told, **conf}, now)


BEFORE = offering(w1=1, w2=2, w3=3)
GONE = "it has no executor, and can't get one: w2 is gone since it was planned"


def test_its_worker_is_gone_and_tokens_keep_it_off_the_others() -> None:
    assert verdict(planned(BEFORE, "w2"), offering(w1=1, w3=3)) == GONE


def test_its_worker_is_there_but_full() -> None:
    """Who holds it will leave: nothing is gained by planning anew."""
    full = replace(BEFORE, workers=tuple(replace(one, free=Free(cores=0, memory_mb=0)) for one in BEFORE.workers))
    assert verdict(planned(BEFORE, "w2"), full) == ""


def test_another_worker_has_joined_in_its_slot() -> None:
    assert verdict(planned(BEFORE, "w2"), offering(w1=1, w3=3, w9=2)) == ""


def test_one_of_two_is_enough() -> None:
    both = planned(BEFORE, "w2", "w3", instances=8)
    assert {box.worker for box in both.group.containers} == {"w2", "w3"}
    assert verdict(both, offering(w1=1, w3=3)) == ""


def test_its_worker_came_back_smaller() -> None:
    """1 core where executors have 2: it waits for what is not offered any more."""
    small = replace(BEFORE, workers=tuple(replace(one, cores=1) for one in BEFORE.workers))
    assert verdict(planned(BEFORE, "w2"), small) == GONE.replace("is gone", "offers less than it did")


def test_what_its_author_alone_asks_for_is_no_reason() -> None:
    """The next plan would not have it either."""
    assert verdict(planned(BEFORE, "w2"), BEFORE, **{"spark.executor.memory": "900g"}) == ""


def test_without_tokens_any_worker_may_hold_it() -> None:
    bare = Cluster(manager="standalone", workers=tuple(replace(one, tokens=()) for one in BEFORE.workers))
    assert verdict(planned(bare, "w2"), replace(bare, workers=bare.workers[:1])) == ""


@pytest.mark.parametrize("manager", ["yarn", "kubernetes"])
def test_where_hosts_are_named_they_count(manager: Any) -> None:
    chosen = planned(offering(manager, w1=1, w2=2), "w2")
    assert verdict(chosen, offering(manager, w1=1)) == GONE
    assert verdict(chosen, offering(manager, w2=2)) == ""


def test_how_long_it_is_without() -> None:
    """It does not say, then none from second 3 on; one comes, and goes in second 9."""
    said = [(1, None), (3, 0), (5, 0), (7, 1), (9, 0), (11, 0)]
    without, lasting = Without(), []
    for now, count in said:
        without = without.after(count, now)
        lasting.append(without.has_lasted(2, now))
    assert lasting == [False, False, True, False, False, True]
