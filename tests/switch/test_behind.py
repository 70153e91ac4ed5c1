"""How far a graph that catches up is behind the owner."""

from __future__ import annotations

import pytest

from airflow_dagsched.switch.advising.behind import NOT_BEHIND, Behind, find_behind
from tests.switch.drawn import FIRST, go_on, make_batch, make_epoch, make_started, tell

OLD = go_on(tell(*FIRST), make_batch(1, 1, 10, 100, watermark=100.0, x_read=400))
BOTH = go_on(OLD, make_epoch(2, x_read={"out": 300}), make_started(2))


def test_the_owner_is_behind_nobody():
    assert find_behind(OLD) == NOT_BEHIND


def test_before_its_first_batch_it_lacks_all_that_the_owner_has_read_since():
    assert find_behind(BOTH) == Behind(100, None)


@pytest.mark.parametrize(("read", "watermark", "behind"), [(30, 40.0, Behind(70, 60.0)), (130, 110.0, Behind(0, 0.0))])
def test_each_of_its_rows_brings_it_nearer(read: int, watermark: float, behind: Behind):
    story = go_on(BOTH, make_batch(2, 0, kept=0, watermark=watermark, x_read=read))
    assert find_behind(story) == behind


def test_a_query_that_the_owner_has_not_says_nothing():
    assert find_behind(go_on(OLD, make_epoch(2, x_read={}), make_started(2))).rows is None
