"""Steps that print megabytes, and what no database takes, on PostgreSQL: all green, and said in the right places. One
that stands still says what it waits for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from airflow_dagsched.launch.protocol.push_limit import PUSH_BYTES
from demo.rest import Run
from tests.system.lab import ON_POSTGRES, Lab, gone, open_lab

pytestmark = ON_POSTGRES

STEPS, LINES = 60, 150
SAID = LINES + 3
"""Lines a step has in its log: one that is nasty, many long ones, its last, and one about the value it returned."""
SHOWN = "nul \\x00, escape \\x1b[31m, half a pair \\ud83d, return \\x0d, C1 \\x9b, line \\u2028"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory.mktemp("noise")) as lab:
        yield lab


@pytest.fixture(scope="module")
def stuck(lab: Lab) -> Run:
    """A run whose step is held; it goes on beside the other."""
    lab.close("stuck")
    return lab.start("stuck")


@pytest.fixture(scope="module")
def run(lab: Lab, stuck: Run) -> Run:
    run = lab.start("noisy")
    assert lab.end(run) == "success", lab.logs(run, "noise.launch", 1)[-5000:]
    return run


def test_the_launch_has_each_line_once(lab: Lab, run: Run) -> None:
    log = lab.client.log(run, "noise.launch").splitlines()
    for number in range(STEPS):
        mine = Counter(line for line in log if line.startswith(f"[print_{number:02}]"))
        assert len(mine) == SAID
        assert set(mine.values()) == {1}
    assert log.count(f"[print_00] {SHOWN}") == 1
    assert any("bytes \\xff\\xfe of nobody" in line for line in log), "what a subprocess wrote"
    assert not any("can't be told" in line or "refuses" in line for line in log)


def test_a_mirror_shows_no_line_twice_and_says_what_is_missing(lab: Lab, run: Run) -> None:
    """Its last lines and its end, as long as the triggerer keeps up: what it takes in later goes to its own log."""
    whole = 0
    for number in range(STEPS):
        log = lab.last_log(run, f"noise.print_{number:02}").splitlines()
        shown = [line for line in log if line.startswith(f"{number:02} ")]
        assert len(shown) == len(set(shown)), "no line twice"
        if f"last of {number:02}" not in log:
            continue
        whole += 1
        missing = sum(int(line.split()[1]) for line in log if "lines left out, noise.launch has them" in line)
        others = sum(line == SHOWN or "shown as text" in line for line in log)
        assert missing + len(shown) + others + 1 in (SAID - 1, SAID)
    assert whole


def test_the_feed_is_small_and_values_are_there(lab: Lab, run: Run) -> None:
    feed = lab.client.xcom(run, "noise.launch", "dagsched")
    assert len(json.dumps(feed)) <= PUSH_BYTES
    assert len(feed["steps"]) == STEPS
    value = lab.client.xcom(run, "noise.print_07")
    said = "nul \\x00, escape \x1b[31m, half a pair \\ud83d, return \r, C1 \x9b, line \u2028"
    assert value == {"said": said, "number": 7}


def test_a_step_that_stands_still_says_so_and_ends_with_it(lab: Lab, stuck: Run) -> None:
    """Held ▒▒▒ "no progress for 3 s" ▒▒▒▒ "6 s" ▒▒▒ execution_timeout ✗ ─► after (not run)."""
    assert lab.end(stuck) == "failed"
    held, after = (lab.last_log(stuck, f"patience.{name}") for name in ("held", "after"))
    waits = "runs no Spark job: in Python at gates.py:"
    assert f"no progress for 3 s: {waits}" in held
    (reason,) = [line for line in held.splitlines() if line.startswith("execution_timeout of 75 s: no progress for ")]
    assert waits in reason
    assert "not run: execution_timeout of 75 s: held: no progress for" in after
    assert "AirflowTaskTimeout: execution_timeout of 75 s: held: no progress for" in lab.last_log(
        stuck, "patience.launch"
    )
    assert gone(lab.applications("stuck"), 30.0)
