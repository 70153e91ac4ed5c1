"""A child's output that nobody takes for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from airflow_dagsched.provider.submission.draining import Drained


def test_all_lines_in_their_order() -> None:
    assert list(Drained(f"{number}\n" for number in range(1000))) == [f"{number}\n" for number in range(1000)]
    assert list(Drained([])) == []


def test_the_child_never_waits() -> None:
    """1,000 lines of ten characters, room for ten: all are read before the first is taken."""
    read, more = threading.Event(), threading.Event()

    def source() -> Iterator[str]:
        for number in range(1000):
            yield f"{number:09}\n"
        read.set()
        more.wait()
        yield "the last\n"

    lines = iter(Drained(source(), most_chars=100))
    assert read.wait(60)
    taken = [next(lines) for _ in range(11)]
    more.set()
    assert taken == [*(f"{number:09}\n" for number in range(10)), "... 990 lines of the driver's output left out here"]
    assert list(lines) == ["the last\n"]
