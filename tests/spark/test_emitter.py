"""Batches on their way: to the file and to stdout, masked, in order, nothing after the last."""

from __future__ import annotations

import io
from pathlib import Path

from airflow_dagsched.launch.protocol.events import (
    Failure,
    Finished,
    Heartbeat,
    Marked,
    StepDone,
    StepLog,
    StepRunning,
    decode_batch,
    decode_marker,
)
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.files.event_files import LocalEventFile
from airflow_dagsched.spark.telling.emitter import BATCH_CHARS, Emitter


def emitter(folder: Path) -> tuple[Emitter, io.StringIO, Masking]:
    out, masking = io.StringIO(), Masking()
    return Emitter(LocalEventFile(str(folder / "events")), "n0nce", out, masking), out, masking


def test_file_and_stdout_say_the_same(tmp_path: Path) -> None:
    """Printed lines come before the batch that follows them; heartbeats are on stdout alone."""
    sender, out, _ = emitter(tmp_path)
    sender.emit(StepRunning("a"))
    sender.add_line("a", "hello")
    sender.send_heartbeat()
    sender.emit(StepDone("a", "success", rows=1))
    in_file = [decode_batch(line) for line in (tmp_path / "events").read_text().splitlines()]
    on_stdout = [marked for line in out.getvalue().splitlines() if (marked := decode_marker(line, "n0nce"))]
    assert in_file == [(StepRunning("a"),), (StepLog("a", ("hello",)), StepDone("a", "success", rows=1))]
    assert on_stdout == [Marked(1, in_file[0]), Marked(1, (Heartbeat(),)), Marked(2, in_file[1])]
    assert "[a] hello" not in out.getvalue(), "whoever follows shows it: once"


def test_where_nobody_follows_lines_are_shown_at_once() -> None:
    out = io.StringIO()
    Emitter(None, "", out, Masking()).add_line("a", "hello \x1b[31mred")
    assert out.getvalue() == "[a] hello \\x1b[31mred\n"


NASTY = "nul \0, escape \x1b, return \r, C1 \x9b, half a pair \ud83d, line \u2028, tab \t, newline \n, 100 €"
SHOWN = "nul \\x00, escape \\x1b, return \\x0d, C1 \\x9b, half a pair \\ud83d, line \\u2028, tab \t, newline \n, 100 €"


def test_every_text_is_safe_to_store(tmp_path: Path) -> None:
    """Control characters are shown; of a returned value only what no database takes, the rest is the author's."""
    sender, _, _ = emitter(tmp_path)
    failure = Failure("author", NASTY, NASTY)
    sender.add_line("a", NASTY)
    sender.emit(
        StepDone("a", "failed", failure=failure, reason=NASTY, metrics={NASTY: 1.0}, datasets={NASTY: NASTY}),
        StepDone("b", "success", value=[{NASTY: NASTY}]),
        Finished(False, 1.0, failure),
    )
    (line,) = (tmp_path / "events").read_text().splitlines()
    log, bad, good, last = decode_batch(line)
    shown = Failure("author", SHOWN, SHOWN)
    assert log == StepLog("a", (SHOWN,))
    assert bad == StepDone("a", "failed", failure=shown, reason=SHOWN, metrics={SHOWN: 1.0}, datasets={SHOWN: SHOWN})
    value = NASTY.replace("\0", "\\x00").replace("\ud83d", "\\ud83d")
    assert good == StepDone("b", "success", value=[{value: value}])
    assert last == Finished(False, 1.0, shown)


def test_a_flood_of_lines_is_sent_in_parts(tmp_path: Path) -> None:
    """1,000 lines of 1,000 characters, without a heartbeat in between: no batch is much more than a part."""
    sender, _, _ = emitter(tmp_path)
    for number in range(1000):
        sender.add_line("a", f"{number:04} " + "x" * 995)
    sender.flush()
    batches = (tmp_path / "events").read_text().splitlines()
    lines = [text for batch in batches for log in decode_batch(batch) if isinstance(log, StepLog) for text in log.lines]
    assert [int(text[:4]) for text in lines] == list(range(1000))
    assert max(map(len, batches)) < 1.2 * BATCH_CHARS


def test_nothing_follows_the_last_event(tmp_path: Path) -> None:
    sender, out, _ = emitter(tmp_path)
    sender.emit(Finished(True, 1.0))
    sender.emit(Finished(False, 2.0))
    sender.send_heartbeat()
    assert (tmp_path / "events").read_text().count("\n") == out.getvalue().count("\n") == 1


def test_a_secret_is_masked_everywhere(tmp_path: Path) -> None:
    """Quotes and backslashes too, which JSON writes differently."""
    sender, out, masking = emitter(tmp_path)
    secret = 'a"b\\c'
    masking.learn({"password": secret})
    sender.add_line("a", f"x {secret}")
    sender.emit(StepDone("a", "success", value={"is": secret}))
    (batch,) = [decode_batch(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert batch == (StepLog("a", ("x ***",)), StepDone("a", "success", value={"is": "***"}))
    assert secret not in out.getvalue()
