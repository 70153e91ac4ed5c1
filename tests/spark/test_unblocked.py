"""Output that nobody reads for a while."""

from __future__ import annotations

import os
import threading

from airflow_dagsched.spark.telling.unblocked import Unblocked


def test_whoever_writes_never_waits() -> None:
    """A full pipe: what does not fit among the waiting lines is left out, whole lines only; the rest comes in order."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as reader, os.fdopen(writing, "w") as pipe:
        out = Unblocked(pipe, most_chars=100_000)
        for number in range(1000):
            out.write(f"{number} {'x' * 995}\n")
        assert not out.drain(0)
        lines: list[str] = []
        taker = threading.Thread(target=lambda: lines.extend(reader), daemon=True)
        taker.start()
        assert out.drain(60)
        pipe.close()
        taker.join()
    numbers = [int(line.split()[0]) for line in lines]
    assert 90 < len(numbers) < 1000
    assert numbers == sorted(set(numbers))


def test_a_reader_that_is_gone_stops_nobody() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as pipe:
        out = Unblocked(pipe)
        out.write("nobody\n")
        assert out.drain(10)
        os.dup2(os.open(os.devnull, os.O_WRONLY), pipe.fileno())  # so that closing it does not write again
