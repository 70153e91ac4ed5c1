"""What of a folder of archives goes, and what stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.class_archive.bounds import (
    AGAIN_AFTER_S,
    MOST,
    Failure,
    Kept,
    has_no_room,
    select_removed,
)

ARCHIVES = st.lists(
    st.builds(Kept, st.sampled_from("abcdefgh"), st.floats(0, 9), st.booleans()), unique_by=lambda each: each.key
)


@given(ARCHIVES, st.sampled_from("abcdefgh"))
def test_the_one_just_made_stays_and_the_folder_is_bounded(archives: list[Kept], wanted: str) -> None:
    removed = set(select_removed(archives, wanted))
    stay = [each for each in archives if each.key not in removed]
    assert wanted not in removed
    assert len(stay) <= MOST
    assert all(each.fits or each.key == wanted for each in stay)


@given(ARCHIVES)
def test_those_that_go_for_want_of_room_were_used_before_those_that_stay(archives: list[Kept]) -> None:
    removed = set(select_removed(archives))
    gone = [each.used_at for each in archives if each.fits and each.key in removed]
    stay = [each.used_at for each in archives if each.key not in removed]
    assert not gone or (len(stay) == MOST and max(gone) <= min(stay))


@given(ARCHIVES)
def test_there_is_room_for_one_that_takes_the_place_of_none_in_use(archives: list[Kept]) -> None:
    """Whatever is made then, each that was used within the day stays."""
    if not has_no_room(archives, now=9.0):
        removed = set(select_removed([*archives, Kept("made", 9.0, fits=True)], "made"))
        assert not [each for each in archives if each.fits and each.key in removed]


def test_what_nobody_has_used_for_a_day_makes_room() -> None:
    archives = [Kept(key, 1000.0, fits=True) for key in "abc"]
    assert has_no_room(archives, 1000.0 + AGAIN_AFTER_S - 1)
    assert not has_no_room(archives, 1000.0 + AGAIN_AFTER_S)
    assert not has_no_room(archives[1:], 1000.0)


def test_a_failure_is_over_after_a_day_or_where_the_clock_went_back() -> None:
    failure = Failure("the disk is full", at=1000.0)
    assert not failure.is_over(1000.0 + AGAIN_AFTER_S - 1)
    assert failure.is_over(1000.0 + AGAIN_AFTER_S)
    assert failure.is_over(999.0)
