"""When it is said that a step gets nowhere, and in what words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_dagsched.launch.escalation.overtime import end_overtime_steps, explain_timeout
from airflow_dagsched.launch.protocol.events import Failure, Stalled, StepDone, StepRunning, decode_batch, encode_batch
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.printable import format_duration
from airflow_dagsched.launch.steps.progress import Progress, Seen, Stage, explain_wait

STAGE = Stage(12, 0, "collect at /dags/lib/etl.py:31", "clean", tasks=8, running=2, hosts=("127.0.0.1",))
QUEUED = replace(STAGE, running=0, hosts=())


def said_at(looks: dict[int, Seen], until: int, stall_s: float = 300.0) -> list[int]:
    """Seconds at which it is said, one look a minute; ``looks`` are the changes."""
    seen = looks[0]
    progress, said = Progress(seen.mark, 0.0), []
    for now in range(0, until, 60):
        seen = looks.get(now, seen)
        progress = progress.after(seen, now)
        if progress.is_due(stall_s, now):
            progress = replace(progress, said=progress.said + 1)
            said.append(now)
    return said


def test_said_at_growing_distances() -> None:
    assert said_at({0: Seen((STAGE,))}, 6000) == [300, 600, 1200, 2400, 4800]
    assert said_at({0: Seen((STAGE,))}, 6000, stall_s=0) == []


@pytest.mark.parametrize(
    "moved",
    [
        Seen((replace(STAGE, ended=1),)),
        Seen((replace(STAGE, rows=1),)),
        Seen((replace(STAGE, attempt=1),)),
        Seen((STAGE, replace(STAGE, number=13))),
        Seen(),
    ],
)
def test_whatever_moves_begins_anew(moved: Seen) -> None:
    assert said_at({0: Seen((STAGE,)), 240: moved}, 900) == [540, 840]


def test_a_task_that_only_starts_is_no_progress_nor_what_python_does_meanwhile() -> None:
    again = Seen((replace(STAGE, running=1),), printed=5, place="etl.py:7 (poll)")
    assert said_at({0: Seen((STAGE,)), 240: again}, 600) == [300]


def test_outside_of_stages_lines_and_jobs_count() -> None:
    assert said_at({0: Seen(), 240: Seen(printed=1)}, 600) == [540]
    assert said_at({0: Seen(), 240: Seen(jobs=1)}, 600) == [540]


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (Seen((STAGE,)), "stage 12 (collect at etl.py:31) runs 2 tasks on 127.0.0.1, none of 8 ended"),
        (
            Seen((replace(STAGE, running=1, ended=7),), place="etl.py:9 (clean)"),
            "stage 12 (collect at etl.py:31) runs 1 task on 127.0.0.1, 7 of 8 ended, called at etl.py:9 (clean)",
        ),
        (
            Seen((replace(QUEUED, name="save at NativeMethodAccessorImpl.java:0"),), executors=0),
            "stage 12 (save) waits for executors: none is there",
        ),
        (
            Seen((QUEUED,), others=("load",), executors=2),
            "stage 12 (collect at etl.py:31) waits for free cores, which tasks of 'load' have",
        ),
        (Seen(place="etl.py:40 (fetch)"), "runs no Spark job: in Python at etl.py:40 (fetch)"),
        (
            Seen(place="etl.py:40 (fetch)", in_spark=True),
            "runs no Spark stage: Spark plans, lists files or commits, called at etl.py:40 (fetch)",
        ),
    ],
)
def test_what_it_waits_for(seen: Seen, words: str) -> None:
    assert explain_wait(seen) == words


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (119, "119 s"), (300, "5 min"), (3600, "1 h"), (7800.5, "2 h 10 min")]
)
def test_duration(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


STALL = Stalled("b", 420.0, "stage 12 (collect at etl.py:31) runs 2 tasks, none of 8 ended")


def test_a_stall_is_a_line_of_its_step() -> None:
    (event,) = decode_batch(encode_batch([STALL]))
    lines = Feed("n").add([event]).logs["b"].lines
    assert lines == ("no progress for 7 min: stage 12 (collect at etl.py:31) runs 2 tasks, none of 8 ended",)


def test_out_of_time() -> None:
    """a ──> b ──> c with a done, b at work: b says why, and so does the launch."""
    feed = Feed("n").add([StepRunning("a"), StepDone("a", "success"), StepRunning("b")])
    bad, rest = end_overtime_steps("abc", feed, 600.0, {"b": STALL})
    assert bad == StepDone("b", "failed", failure=Failure("timeout", f"execution_timeout of 10 min: {STALL.line}"))
    assert (rest.step, rest.state) == ("c", "upstream_failed")
    assert explain_timeout(600.0, {"b": STALL}) == f"execution_timeout of 10 min: b: {STALL.line}"
    assert explain_timeout(600.0, {}) == "execution_timeout of 10 min"
