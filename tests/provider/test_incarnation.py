"""When a run began for the first time: kept by its first launch, the same for all that follow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.provider.following.incarnation import determine_incarnation, format_moment

FIRST = datetime(2026, 3, 5, 6, 7, 8, tzinfo=UTC)


class Kept:
    """The XCom of one run."""

    def __init__(self) -> None:
        self.value: str | None = None

    def seen(self, start_date: datetime | None) -> str:
        """What a launch finds that begins while the run has this date."""
        return determine_incarnation(start_date, lambda: self.value, lambda began: setattr(self, "value", began))


def test_the_first_launch_decides_whatever_a_clear_makes_of_the_date() -> None:
    run = Kept()
    assert run.seen(FIRST) == run.seen(FIRST + timedelta(hours=3)) == "2026-03-05T06:07:08.000000Z"


def test_a_run_made_again_is_another_and_a_later_one() -> None:
    first, again = Kept().seen(FIRST), Kept().seen(FIRST + timedelta(microseconds=1))
    assert TryId(first, 7, 9) < TryId(again, 0, 1)


def test_moments_are_compared_as_texts() -> None:
    """Time zones and whole seconds don't change width or order."""
    east = FIRST.astimezone(timezone(timedelta(hours=5)))
    texts = [
        format_moment(None),
        format_moment(east),
        format_moment(FIRST + timedelta(milliseconds=1)),
        format_moment(FIRST + timedelta(days=300)),
    ]
    assert texts == sorted(texts)
    assert len({len(text) for text in texts[1:]}) == 1
