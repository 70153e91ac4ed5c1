"""Partitions of real folders, listed without Spark."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import fsspec
import pytest

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.plan.pruning import list_stored
from airflow_dagsched.plan.pruning.conditions.where import parse_condition
from airflow_dagsched.provider.clusters.call_with_timeout import call_with_timeout
from airflow_dagsched.provider.clusters.folder_listing import FileLister, TimelyLister, resolve_location


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for day in ("2013-01-01", "2013-01-02"):
        folder = tmp_path / "my table" / f"day={day}" / "at=05%3A00"
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").write_bytes(b"x" * 10)
        (folder / ".part-0.parquet.crc").write_bytes(b"x")
    (tmp_path / "my table" / "_SUCCESS").touch()
    return tmp_path / "my table"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_local_folder(table: Path, scheme: str) -> None:
    lister, root = FileLister.of(f"{scheme}{table}")
    listing = list_stored(lister, root, parse_condition("day = '2013-01-02'", {}))
    (stored,) = listing.stored
    assert stored.folder == "day=2013-01-02/at=05%3A00"
    assert (stored.partition.key, stored.partition.bytes) == ({"day": "2013-01-02", "at": "05:00"}, 10)
    assert listing.left_out == ("day=2013-01-01",)


def test_a_linked_folder_is_one(table: Path, tmp_path: Path) -> None:
    """Spark follows links, too."""
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "day=2013-01-02").symlink_to(table / "day=2013-01-02")
    (stored,) = list_stored(*FileLister.of(str(tmp_path / "links"))).stored
    assert (stored.folder, stored.partition.bytes) == ("day=2013-01-02/at=05%3A00", 10)


@pytest.mark.parametrize(
    ("location", "conf", "found"),
    [
        ("/data/t", {}, "/data/t"),
        ("file:///data/t", {}, "file:///data/t"),
        ("file:/data/t", {}, "/data/t"),
        ("s3a://bucket/t", {}, "s3://bucket/t"),
        ("/data/t", {"spark.hadoop.fs.defaultFS": "hdfs://name:8020/"}, "hdfs://name:8020/data/t"),
    ],
)
def test_where_spark_finds_it(location: str, conf: dict[str, str], found: str) -> None:
    assert resolve_location(location, conf, lambda: "local[2]") == found


def test_on_yarn_a_path_alone_says_too_little() -> None:
    with pytest.raises(ValueError, match="names no file system"):
        resolve_location("/data/t", {}, lambda: "yarn")


def test_a_store_of_objects() -> None:
    with fsspec.open_files(["memory://t/day=1/a", "memory://t/day=2/b"], "wb") as files:
        for file in files:
            file.write(b"123")
    listing = list_stored(*FileLister.of("memory://t"), parse_condition("day = 1", {}))
    assert [(stored.folder, stored.partition.bytes) for stored in listing.stored] == [("day=1", 3)]


def test_a_missing_folder_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_stored(*FileLister.of(str(tmp_path / "nothing")))


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "import sys, airflow_dagsched.provider.clusters.folder_listing; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"fsspec", "pyarrow", "sqlglot"}.isdisjoint(done.stdout.split())


def test_a_folder_that_is_listed_in_time(table: Path) -> None:
    lister, root = TimelyLister.of(str(table), 30.0)
    assert sorted(entry.name for entry in lister.list_children(root)) == [
        "_SUCCESS",
        "day=2013-01-01",
        "day=2013-01-02",
    ]
    with pytest.raises(FileNotFoundError):
        lister.list_children(f"{root}/nothing")


def test_a_file_system_that_does_not_answer(table: Path) -> None:
    """As a mount whose server is gone: the call never returns."""
    gone = threading.Event()
    with pytest.raises(ClusterUnknown, match=r"/t gave no answer we can read: no whole answer came within 0\.1 s"):
        call_with_timeout(gone.wait, 0.1, "/t")
    gone.set()
