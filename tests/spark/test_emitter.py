"""Batches on their way: to the file and to stdout, masked, in order, nothing after the last."""

from __future__ import annotations

import io
from pathlib import Path

from airflow_dagsched.launch.events import (
    Finished,
    Heartbeat,
    Marked,
    StepDone,
    StepLog,
    StepRunning,
    from_line,
    from_marker,
)
from airflow_dagsched.launch.masking import Masking
from airflow_dagsched.spark.emitter import Emitter, LocalEventFile


def emitter(folder: Path) -> tuple[Emitter, io.StringIO, Masking]:
    out, masking = io.StringIO(), Masking()
    return Emitter(LocalEventFile(str(folder / "events")), "n0nce", out, masking), out, masking


def test_file_and_stdout_say_the_same(tmp_path: Path) -> None:
    """Printed lines come before the batch that follows them; heartbeats are on stdout alone."""
    sender, out, _ = emitter(tmp_path)
    sender.emit(StepRunning("a"))
    sender.log("a", "hello")
    sender.heartbeat()
    sender.emit(StepDone("a", "success", rows=1))
    in_file = [from_line(line) for line in (tmp_path / "events").read_text().splitlines()]
    on_stdout = [marked for line in out.getvalue().splitlines() if (marked := from_marker(line, "n0nce"))]
    assert in_file == [(StepRunning("a"),), (StepLog("a", ("hello",)), StepDone("a", "success", rows=1))]
    assert on_stdout == [Marked(1, in_file[0]), Marked(1, (Heartbeat(),)), Marked(2, in_file[1])]
    assert "[a] hello\n" in out.getvalue()


def test_nothing_follows_the_last_event(tmp_path: Path) -> None:
    sender, out, _ = emitter(tmp_path)
    sender.emit(Finished(True, 1.0))
    sender.emit(Finished(False, 2.0))
    sender.heartbeat()
    assert (tmp_path / "events").read_text().count("\n") == out.getvalue().count("\n") == 1


def test_a_secret_is_masked_everywhere(tmp_path: Path) -> None:
    """Quotes and backslashes too, which JSON writes differently."""
    sender, out, masking = emitter(tmp_path)
    secret = 'a"b\\c'
    masking.learn({"password": secret})
    sender.log("a", f"x {secret}")
    sender.emit(StepDone("a", "success", value={"is": secret}))
    (batch,) = [from_line(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert batch == (StepLog("a", ("x ***",)), StepDone("a", "success", value={"is": "***"}))
    assert secret not in out.getvalue()
