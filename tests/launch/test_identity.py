"""The order of tries, and what the id of a task instance says."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.identity import TryId, read_creation_time

BEGAN = st.datetimes().map(lambda at: f"{at:%Y-%m-%dT%H:%M:%S.%f}Z")
TRIES = st.builds(TryId, BEGAN, st.integers(0, 12), st.integers(1, 12))


@given(TRIES, TRIES)
def test_a_later_run_counts_more_than_a_clear_and_a_clear_more_than_a_try(one: TryId, other: TryId) -> None:
    keys = [(each.incarnation, each.clear_number, each.try_number) for each in (one, other)]
    assert (one < other) == (keys[0] < keys[1])
    assert (one.round == other.round) == (keys[0][:2] == keys[1][:2])


def test_an_id_tells_when_the_task_instance_was_made() -> None:
    assert read_creation_time(UUID(int=(1_772_690_828_123 << 80) | (7 << 76) | (2 << 62))) == 1_772_690_828.123


def test_an_id_that_tells_nothing_is_not_guessed_from() -> None:
    with pytest.raises(ValueError, match="does not say when"):
        read_creation_time(uuid4())
