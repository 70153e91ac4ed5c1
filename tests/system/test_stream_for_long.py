"""A thousand triggers of a stream in a real Airflow, as fast as they come: what lies there afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import pytest

from airflow_dagsched.spark.stream_driver.output_file import LONGEST
from demo.rest import until
from tests.system.streams import LAUNCH, MIRRORS, Stream, open_stream

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]

SOME, MANY = 500, 1000
"""Batches. Spark keeps what is of the last 100 of them; a log has 200 records more than it needs, and is made shorter
when there are as many again.
"""
FAST_TIME = """
        conf={
            "spark.sql.streaming.stateStore.maintenanceInterval": "5s",
            "spark.sql.streaming.fileSource.log.cleanupDelay": "5s",
        },
"""
"""Spark removes what it needs no more each minute, lists of read files ten minutes later: that is scaled as well."""
PATIENCE_S = 1400.0
LISTED = "checkpoint/sources"
"""Where Spark lists all files that a query has read: the only thing that grows by rows, and in length alone."""
PRINTED = "output"
STATE, MANIFESTS = "checkpoint/state", "checkpoint/state: manifests"
MOST_A_BATCH = 64
"""Bytes by which a batch may lengthen the manifest in RocksDB's snapshots: it notes each of its files there, and begins
it anew only where the store is opened, so by each start of a driver.
"""


@dataclass(frozen=True)
class Held:
    """What lies in a folder."""

    files: int
    size: int
    """Bytes."""


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    with open_stream(tmp_path) as stream:
        stream.edit('trigger="1 second",', f'trigger="1 millisecond",{FAST_TIME}')
        yield stream


def hold_parts(stream: Stream) -> dict[str, Held]:
    """Files of the stream and of its run's logs, by what they are for."""
    files, sizes = Counter[str](), Counter[str]()
    for folder in (stream.lab.home / "work", stream.lab.home / "logs" / "dag_id=clicks"):
        for file, size in list_sizes(folder):
            part = name_part(file.relative_to(stream.lab.home))
            files[part] += 1
            sizes[part] += size
            if part == STATE and file.suffix == ".zip" and (manifest := measure_manifest(file)):
                files[MANIFESTS] += 1
                sizes[MANIFESTS] += manifest
                sizes[STATE] -= manifest
    return {part: Held(files[part], sizes[part]) for part in files}


def list_sizes(folder: Path) -> Iterator[tuple[Path, int]]:
    """Files, of which any may be removed meanwhile."""
    for each in folder.rglob("*"):
        try:
            if each.is_file():
                yield each, each.stat().st_size
        except FileNotFoundError:
            continue


def measure_manifest(snapshot: Path) -> int:
    """Bytes that RocksDB's manifest takes in it; 0: the snapshot is gone, or is still written."""
    try:
        with ZipFile(snapshot) as members:
            return sum(each.compress_size for each in members.infolist() if each.filename.startswith("MANIFEST"))
    except (FileNotFoundError, BadZipFile):
        return 0


def name_part(path: Path) -> str:
    """What a file is for: the kind of a checkpoint's, the folder below the epoch's, below the flow's, or a log."""
    parts = path.parts
    if "checkpoint" in parts:
        return "/".join(parts[parts.index("checkpoint") :][:2])
    if "epochs" in parts:
        below = parts[parts.index("epochs") + 2 :]
        return below[0] if len(below) > 1 else "epoch"
    return parts[4] if parts[:2] == ("work", "streams") else "/".join(parts[:2])


def reach(stream: Stream, batches: int) -> None:
    def is_there() -> bool | None:
        return stream.count_batches() >= batches or None

    until(f"{batches} batches", is_there, PATIENCE_S)


def test_a_thousand_triggers_leave_no_more_than_some_hundreds(stream: Stream) -> None:
    lab = stream.lab
    stream.feed(MANY + 10)
    run = stream.start()
    (driver,) = stream.find_drivers()
    reach(stream, SOME)
    some = hold_parts(stream)
    reach(stream, MANY)
    many = hold_parts(stream)
    print("\n".join(f"{part}: {some.get(part)} {many[part]}" for part in sorted(many)))

    grown = {part: (some.get(part), held) for part, held in many.items() if part not in (LISTED, PRINTED, MANIFESTS)}
    assert {part for part, (before, after) in grown.items() if before is None} == set()
    assert {part: both for part, both in grown.items() if both[0] and both[1].files > 1.25 * both[0].files} == {}
    assert {part: both for part, both in grown.items() if both[0] and both[1].size > 1.25 * both[0].size} == {}
    assert many[LISTED].files <= 1.25 * some[LISTED].files
    manifests = many[MANIFESTS]
    assert manifests.files <= 1.25 * some[MANIFESTS].files
    assert manifests.size <= manifests.files * MOST_A_BATCH * MANY
    assert many[PRINTED].size <= 2 * LONGEST

    assert stream.count_tries(run) == 1
    assert [each.pid for each in stream.find_drivers()] == [driver.pid]
    states = lab.states(run)
    assert [states[each] for each in (LAUNCH, *MIRRORS)] == ["deferred"] * 4
    stream.stop()
    assert lab.end(run) == "success"
    stream.prove_table()
