"""Power cuts: what a record says is there is on disk before the record is, and a journal outlasts its moves.

No power is cut: the calls of ``fsync`` are watched, each of them real. What a path was given to it for is on disk then.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.outputs.homes import name_hidden_folder
from tests.spark.test_table_commit import Writer

OutputsOf = Callable[..., Outputs]
JOURNAL_GOES = "the journal goes"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files and folders that were brought to disk, in order."""
    paths: list[str] = []
    sync = os.fsync

    def watch(handle: int) -> None:
        sync(handle)
        paths.append(str(Path(f"/proc/self/fd/{handle}").readlink()))

    monkeypatch.setattr(os, "fsync", watch)
    return paths


class Marking(LocalStore):
    """Notes when a journal goes."""

    def __init__(self, kept: list[str]) -> None:
        self.kept = kept

    def delete(self, path: str) -> None:
        if path.endswith("/swap.json"):
            self.kept.append(JOURNAL_GOES)
        super().delete(path)


def split_at_record(kept: list[str]) -> tuple[list[str], list[str]]:
    """What was kept before the record was begun, and from then on."""
    at = next(number for number, path in enumerate(kept) if "/commits/" in path)
    return kept[:at], kept[at:]


def test_a_new_file_is_kept_with_its_text_its_name_and_its_folders(tmp_path: Path, kept: list[str]):
    """The text before the name: a name with nothing in it would count as taken."""
    assert LocalStore().create_exclusive(f"{tmp_path}/a/b/file", "text")
    draft = next(path for path in kept if "/.draft-" in path)
    assert kept == [str(tmp_path), f"{tmp_path}/a", draft, f"{tmp_path}/a/b"]


def test_rows_of_a_table_are_kept_before_their_record_and_moves_before_the_journal_goes(
    tmp_path: Path, kept: list[str]
):
    """Files, then the folders that their names are in, to the top; journal included."""
    writer = Writer(str(tmp_path), LocalStore())
    writer.write("mon", ("a=1/b=1",))
    committed, swap, lease = writer.prepare("mon", ("a=2/b=1",))
    kept.clear()
    writer.commits.commit_table(Marking(kept), committed, swap, lease)
    before, after = split_at_record(kept)
    new, ((name, _),) = f"{swap.draft}/new", committed.files
    drafted = [each for each in before if "/.draft-" not in each]
    assert drafted == [f"{new}/{name}", f"{new}/a=2/b=1", f"{new}/a=2", new, swap.draft, name_hidden_folder(swap.table)]
    moved = after[: after.index(JOURNAL_GOES)]
    assert {f"{swap.table}/a=2/b=1", f"{swap.table}/a=2", swap.table, str(tmp_path)} <= set(moved)
    writer.keeper.close()


@pytest.mark.spark
def test_rows_of_a_dataset_are_kept_before_their_record(outputs_of: OutputsOf, spark: SparkSession, kept: list[str]):
    """Files, and the folders above them to that of all datasets."""
    committed = outputs_of().write_dataset(spark.range(3), StepSpec("step", "code"), "", "f")
    before, _ = split_at_record(kept)
    files = [f"{committed.path}/{name}" for name, _ in committed.files]
    assert files
    folders = [str(each) for each in (Path(committed.path), *Path(committed.path).parents)]
    assert {*files, *folders[:4]} <= set(before)
    assert folders[3].endswith("/work/datasets")
