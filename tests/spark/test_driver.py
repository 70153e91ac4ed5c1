"""The driver program: refusals in this process, runs as ``spark-submit`` starts it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from pyspark.sql import SparkSession

import airflow_dagsched
from airflow_dagsched.launch.managers import spark_versions
from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import (
    Event,
    Failure,
    Finished,
    Started,
    StepDone,
    StepRunning,
    decode_batch,
    decode_marker,
)
from airflow_dagsched.launch.protocol.manifest import (
    ENV_MANIFEST_SHA256,
    ENV_NONCE,
    ENV_PAYLOAD,
    ENV_PAYLOAD_SHA256,
    PAYLOAD_KEY,
    SECRETS_KEY,
    Manifest,
    StepSpec,
    hash_content,
)
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.driver.program import REFUSED, STOPPED, Driver, find_events_path, main
from airflow_dagsched.spark.driver.stop import Launcher
from airflow_dagsched.spark.files.event_files import HadoopEventFile, LocalEventFile
from airflow_dagsched.spark.telling.emitter import Emitter

PACKAGE = Path(airflow_dagsched.__file__).parent
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def manifest(folder: Path, *steps: StepSpec, **fields: Any) -> Manifest:
    made = Manifest(
        airflow_dagsched.__version__, PYTHON, "d", "f", "g", "run", 1, 0, str(folder / "work"),
        str(folder / "events"), "key", tuple(step.id for step in steps), steps,
    )  # fmt: skip
    return replace(made, **fields)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"package_version": "0.0.9"}, "install the same version on both sides"),
        ({"version": 99}, "format 99"),
        ({"python": "3.8"}, "pickled by Python 3.8"),
    ],
)
def test_another_versions_manifest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], reason: str
) -> None:
    """Exit code 2, and one event that says which side to change. Spark is not started for it."""
    made = manifest(tmp_path, **fields)
    launched_with(monkeypatch, write_payload(tmp_path, made, {}))
    emitter = Emitter(LocalEventFile(str(tmp_path / "events")), "", io.StringIO(), Masking())
    assert Driver(emitter, Masking()).run(made.to_json()) == REFUSED
    ((last,),) = events(tmp_path)
    assert isinstance(last, Finished)
    assert not last.ok
    assert last.failure is not None
    assert last.failure.kind == "refused"
    assert reason in last.failure.message


def test_an_event_file_is_one_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A driver program that is started again, or by mistake, says so on stdout: the file is the first one's."""
    (tmp_path / "events").write_text("of the first\n")
    (tmp_path / "manifest").write_text(manifest(tmp_path).to_json())
    launched_with(monkeypatch, {ENV_NONCE: "n0nce", **write_payload(tmp_path, manifest(tmp_path), {})})
    assert main([str(tmp_path / "manifest")]) == REFUSED
    assert (tmp_path / "events").read_text() == "of the first\n"
    marked = decode_marker(capsys.readouterr().out, "n0nce")
    assert marked is not None
    (last,) = marked.events
    assert isinstance(last, Finished)
    assert last.failure is not None
    assert "is another driver program's already" in last.failure.message


def test_an_event_file_of_another_file_system_is_one_programs(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/events"
    HadoopEventFile(spark, path)
    with pytest.raises(FileExistsError):
        HadoopEventFile(spark, path)


def test_what_somebody_else_changed_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest that names another event file, a payload with other functions: neither is followed, nor run."""
    made, out, called = manifest(tmp_path, StepSpec("a", "1")), io.StringIO(), tmp_path / "called"
    private = write_payload(tmp_path, made, {})
    launched_with(monkeypatch, private)
    forged = manifest(tmp_path, StepSpec("a", "1"), events=str(tmp_path / "victim")).to_json()
    assert find_events_path(made.to_json()) == str(tmp_path / "events")
    assert find_events_path(forged) is None
    write_payload(tmp_path, made, {"a": cloudpickle.dumps(Call(called.touch))})
    for text, what in ((forged, "the manifest"), (made.to_json(), "the payload")):
        assert Driver(Emitter(None, "n0nce", out, Masking()), Masking()).run(text) == REFUSED
        assert f"{what} is not as the launch task wrote it" in out.getvalue()
    assert not called.exists()
    assert not (tmp_path / "victim").exists()


def test_a_spark_that_is_broken_runs_no_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version that counts is the running one's: kind ``refused``, what was seen, what to install."""
    monkeypatch.setitem(spark_versions.BROKEN, spark.version, "it was seen to hang")
    made = manifest(tmp_path, StepSpec("a", "1"))
    called = tmp_path / "called"
    launched_with(monkeypatch, write_payload(tmp_path, made, {"a": cloudpickle.dumps(Call(called.touch))}))
    emitter = Emitter(LocalEventFile(str(tmp_path / "events")), "", io.StringIO(), Masking())
    assert Driver(emitter, Masking()).run(made.to_json()) == REFUSED
    ((last,),) = events(tmp_path)
    assert isinstance(last, Finished)
    assert last.failure is not None
    assert last.failure.kind == "refused"
    assert last.failure.message.startswith(
        f"Spark {spark.version} is refused: it was seen to hang (pip install pyspark"
    )
    assert not called.exists()


@pytest.fixture
def launcher() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_launcher_that_ended_is_gone_though_not_yet_collected(launcher: subprocess.Popen[bytes]) -> None:
    seen = Launcher(launcher.pid)
    assert not seen.is_gone()
    launcher.kill()
    os.waitid(os.P_PID, launcher.pid, os.WEXITED | os.WNOWAIT)
    assert seen.is_gone()


def test_only_the_driver_and_a_zip_of_its_folders_are_needed(tmp_path: Path) -> None:
    """a -> b, and c that cannot be unpickled there; no Airflow, no DAG file; the payload is gone at once.

    What Spark writes there has no checksums beside it.
    """

    def a() -> list[bool]:
        import sys
        from pathlib import Path

        from pyspark.sql import SparkSession

        SparkSession.builder.getOrCreate().range(2).write.parquet(rows)
        return ["airflow" in sys.modules, Path(payload).exists()]

    def b(a: list[bool]) -> list[bool]:
        return a

    payload, rows = str(tmp_path / "payload"), str(tmp_path / "rows")
    code = submit(
        tmp_path,
        manifest(tmp_path, StepSpec("a", "1"), StepSpec("b", "2", (Output("a"),), ("a",)), StepSpec("c", "3")),
        {"a": cloudpickle.dumps(Call(a)), "b": cloudpickle.dumps(Call(b, (Output("a"),))), "c": b"not a pickle"},
    )
    told = [event for batch in events(tmp_path) for event in batch]
    ends = {event.step: event for event in told if isinstance(event, StepDone)}
    assert code == 1
    assert isinstance(told[0], Started)
    assert told[-1] == replace(told[-1], ok=False, failure=None)  # type: ignore[call-arg]
    assert {step: end.state for step, end in ends.items()} == {"a": "success", "b": "success", "c": "failed"}
    assert ends["b"].value == [False, False]
    assert list(Path(rows).glob("*.parquet"))
    assert not list(Path(rows).glob(".*.crc"))
    assert "cannot be unpickled" in str(ends["c"].failure)


def test_a_driver_whose_launcher_is_gone_stops(tmp_path: Path, launcher: subprocess.Popen[bytes]) -> None:
    """The launcher is killed once the step runs; the step itself would never end."""

    def endless() -> None:
        import time

        while True:
            time.sleep(1)

    def kill_when_running(line: str) -> None:
        if StepRunning("a") in from_marker_or_none(line):
            launcher.kill()

    made = manifest(tmp_path, StepSpec("a", "1"), launcher_pid=launcher.pid)
    assert submit(tmp_path, made, {"a": cloudpickle.dumps(Call(endless))}, kill_when_running) == STOPPED
    (last,) = events(tmp_path)[-1]
    assert isinstance(last, Finished)
    assert last.failure == Failure("lost_driver", "stopped: the process that launched this driver is gone")


def from_marker_or_none(line: str) -> tuple[Event, ...]:
    from airflow_dagsched.launch.protocol.events import decode_marker

    marked = decode_marker(line, "n0nce")
    return marked.events if marked else ()


def events(folder: Path) -> list[tuple[Event, ...]]:
    return [decode_batch(line) for line in (folder / "events").read_text().splitlines()]


def submit(
    folder: Path, made: Manifest, payload: dict[str, bytes], on_line: Callable[[str], None] = lambda _: None
) -> int:
    """Run ``spark-submit`` as on a machine that has PySpark and what is shipped; its exit code."""
    private = write_payload(folder, made, payload)
    (folder / "manifest").write_text(made.to_json())
    command = [
        str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]", "--conf", "spark.ui.enabled=false",
        "--py-files", str(shipped(folder)), str(folder / "driver.py"), str(folder / "manifest"),
    ]  # fmt: skip
    ours = {"DAGSCHED_NONCE": "n0nce", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": ""}
    environment = {**os.environ, **ours, **private}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line)
    return process.returncode


def write_payload(folder: Path, made: Manifest, payload: dict[str, bytes]) -> dict[str, str]:
    """The private file beside a manifest; what the environment says of both."""
    content = cloudpickle.dumps({PAYLOAD_KEY: made.to_json().encode(), SECRETS_KEY: b"[]", **payload})
    (folder / "payload").write_bytes(content)
    return {
        ENV_MANIFEST_SHA256: hash_content(made.to_json().encode()),
        ENV_PAYLOAD: str(folder / "payload"),
        ENV_PAYLOAD_SHA256: hash_content(content),
    }


def launched_with(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def shipped(folder: Path) -> Path:
    """A zip of the pure folders and ``spark/``, and beside it the file that is submitted."""
    (folder / "driver.py").write_bytes((PACKAGE / "spark" / "driver" / "main.py").read_bytes())
    with zipfile.ZipFile(folder / "package.zip", "w") as archive:
        for part in ("__init__.py", "errors.py", "exclusive.py", "version.py", "launch", "spark"):
            found = PACKAGE / part
            for file in [found] if found.is_file() else sorted(found.rglob("*.py")):
                archive.write(file, file.relative_to(PACKAGE.parent))
    return folder / "package.zip"
