"""Processor seconds are those of all processes below this one, also of those that have ended."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.stream.meter import Meter
from tests.streams.kit import wait_until

BUSY_S, SEEN_S = 0.5, 0.4
# Seconds of a look are whole ticks.
BUSY = f"import time\nwhile time.process_time() < {BUSY_S}: pass\ninput()"


def test_what_a_process_has_worked_counts_when_it_is_gone():
    begun = time.time()
    with Meter().running() as meter:
        for number in (1, 2):
            with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE):
                wait_until(lambda due=number * SEEN_S: meter.measure(begun, time.time()) >= due, lambda: "not seen")
