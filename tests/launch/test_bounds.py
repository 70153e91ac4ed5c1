"""How large a push may be, and what of a feed is in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.events import Failure, StepDone, StepLog, StepRunning
from airflow_dagsched.launch.protocol.feed import LOG_LINES, Feed
from airflow_dagsched.launch.protocol.push_limit import PUSH_BYTES, divide_fairly, encode_feed, read_feed

CLEAN = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
"""What the driver program sends: NUL and half a surrogate pair are made safe there."""
SAID = st.text(CLEAN, max_size=600)


def size(feed: Feed, now_s: float = 0.0) -> int:
    return len(json.dumps(encode_feed(feed, now_s)).encode())


def printing(steps: int, lines: int, chars: int) -> Feed:
    """Steps that print and end, a second apart."""
    feed = Feed("n")
    for number in range(steps):
        name = f"step_{number:03}"
        feed = feed.add(
            [StepRunning(name), StepLog(name, tuple(f"{at} " + "x" * chars for at in range(lines)))], number
        )
        feed = feed.add([StepDone(name, "success", rows=number)], number)
    return feed


def test_sixty_steps_of_long_lines() -> None:
    """3 MB of lines: all ends are there, the last lines of those that ended last, and how many are missing."""
    feed = printing(60, 150, 500)
    assert size(feed, 59.0) <= PUSH_BYTES
    read = read_feed(encode_feed(feed, 59.0))
    assert list(read.steps) == list(feed.steps)
    last = read.logs["step_059"]
    assert last.lines[-1] == feed.logs["step_059"].lines[-1]
    assert last.first + len(last.lines) == 150
    assert len(read.logs["step_059"].lines) > 10
    assert "step_000" not in read.logs


def test_all_that_spoke_just_now_have_the_same_room() -> None:
    feed = Feed("n").add([StepLog(f"s{number}", tuple("y" * 300 for _ in range(100))) for number in range(60)])
    assert size(feed) <= PUSH_BYTES
    read = read_feed(encode_feed(feed, 0.0))
    assert {len(lines.lines) for lines in read.logs.values()} == {3}
    assert set(read.logs) == set(feed.logs)


def test_many_steps_that_fail_at_length() -> None:
    """300 tracebacks of 6,000 characters: each end is there, in fewer words."""
    failure = Failure("author", "m" * 400, "t" * 6000)
    ends = [StepDone(f"step_{n}", "failed", failure=failure, reason="r" * 1000) for n in range(300)]
    feed = Feed("n").add(ends)
    assert size(feed) <= PUSH_BYTES
    read = read_feed(encode_feed(feed, 0.0))
    assert {end.state for end in read.steps.values()} == {"failed"}
    assert all("more characters" in (end.failure or failure).message for end in read.steps.values())


@pytest.mark.parametrize("steps", [1, 10, 100, 1000])
def test_states_of_a_thousand_steps_fit(steps: int) -> None:
    datasets = {"": "/work/datasets/" + "d" * 120}
    ends = [StepDone(f"load_{n:04}", "success", rows=10**9, bytes=10**12, datasets=datasets) for n in range(steps)]
    feed = Feed("n").add(ends).add([StepLog(end.step, ("a line",) * 10) for end in ends])
    assert size(feed) <= PUSH_BYTES
    assert list(read_feed(encode_feed(feed, 0.0)).steps) == list(feed.steps)


def test_one_short_push_says_all() -> None:
    """Nothing is left out where there is room, but what mirrors have of their own."""
    done = StepDone("a", "success", rows=0, seconds=1.5, datasets={"": "/d"}, reason="because")
    feed = Feed("n", final=True, running=("b",), began=7.0).add([done, StepLog("b", ("1", "2"))])
    assert read_feed(encode_feed(feed, 0.0)) == feed
    large = StepDone("c", "success", value="v" * 40_000, fused=("a",) * 1000, metrics={"rows": 1.0})
    assert size(Feed("n").add([large])) < 400


@given(
    st.dictionaries(
        st.text(CLEAN, min_size=1, max_size=60),
        st.tuples(
            st.lists(st.text(CLEAN, max_size=600), max_size=LOG_LINES), st.floats(0, 10), st.text(CLEAN, max_size=3000)
        ),
        max_size=40,
    )
)
def test_no_push_is_larger(steps: dict[str, tuple[list[str], float, str]]) -> None:
    """Whatever the alphabet: a character beyond ASCII takes six bytes, or twelve."""
    feed = Feed("n")
    for name, (lines, at, reason) in steps.items():
        feed = feed.add([StepLog(name, tuple(lines)), StepDone(name, "skipped", reason=reason)], at)
    assert size(feed, 10.0) <= PUSH_BYTES
    read = read_feed(encode_feed(feed, 10.0))
    assert list(read.steps) == list(steps)
    for name, shown in read.logs.items():
        assert shown.first + len(shown.lines) == len(steps[name][0])


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 1000), max_size=10), st.integers(0, 5000))
def test_fair_shares(wanted: dict[str, int], room: int) -> None:
    shares = divide_fairly(wanted, room)
    assert sum(shares.values()) <= room
    assert all(share <= wanted[name] for name, share in shares.items())
    least = min((share for name, share in shares.items() if share < wanted[name]), default=None)
    assert least is None or all(share <= least + 1 for share in shares.values())
