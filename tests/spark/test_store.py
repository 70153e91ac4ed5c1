"""The file operations, the same on local paths and through Hadoop's FileSystem."""

from __future__ import annotations

import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_dagsched.spark.files.hadoop_store import HadoopStore
from airflow_dagsched.spark.files.store import LocalStore, Store, join_path, make_local_path, walk_files
from airflow_dagsched.spark.files.stores import open_store
from airflow_dagsched.spark.outputs.locks import hold_lock


@pytest.fixture(params=["local", "hadoop"])
def store(request: pytest.FixtureRequest) -> Store:
    """Both stores; Hadoop's on its own local file system."""
    return LocalStore() if request.param == "local" else HadoopStore(request.getfixturevalue("spark"))


@pytest.fixture(params=["", "file://"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder, spelled in both ways, with characters that are special in URLs and patterns."""
    return f"{request.param}{tmp_path}/a b%2F[1]"


@pytest.mark.spark
class TestBothStores:
    """What ``Store`` promises."""

    def test_create_exclusive_makes_a_file_once(self, store: Store, root: str):
        """The second writer changes nothing."""
        assert store.create_exclusive(f"{root}/x/one.json", "é\n1")
        assert not store.create_exclusive(f"{root}/x/one.json", "2")
        assert store.read_text(f"{root}/x/one.json") == "é\n1"

    def test_write_text_replaces(self, store: Store, root: str):
        """A renewal leaves the new text only."""
        store.write_text(f"{root}/lease", "1")
        store.write_text(f"{root}/lease", "22")
        assert store.read_text(f"{root}/lease") == "22"
        assert [(entry.name, entry.size) for entry in store.list(root)] == [("lease", 2)]

    def test_what_is_missing_is_missing(self, store: Store, root: str):
        """Reading says so, listing finds nothing, deleting has nothing to do."""
        with pytest.raises(FileNotFoundError):
            store.read_text(f"{root}/x")
        assert store.list(root) == ()
        assert not store.exists(root)
        assert not store.delete_empty(root)
        store.delete(root)

    def test_rename_does_not_write_over(self, store: Store, root: str):
        """Nor does it move into a folder that exists, as Hadoop's would."""
        store.mkdirs(f"{root}/a/b")
        store.mkdirs(f"{root}/c")
        with pytest.raises(OSError, match="exists"):
            store.rename(f"{root}/a", f"{root}/c")
        store.rename(f"{root}/a", f"{root}/d")
        assert [entry.name for entry in store.list(root)] == ["c", "d"]

    def test_delete_takes_all_in_a_folder(self, store: Store, root: str):
        """And ``delete_empty`` only what is empty."""
        store.write_text(f"{root}/a/b/c", "")
        assert not store.delete_empty(f"{root}/a")
        store.delete(f"{root}/a")
        assert store.list(root) == ()
        assert store.delete_empty(root)

    def test_walk_sees_what_spark_reads(self, store: Store, root: str):
        """Hidden files and folders are left out, partition columns that begin with ``_`` are not."""
        for path in ("one", "_temporary/x", ".hidden/x", "_SUCCESS", "day=1/two", "_id=2/day=3/three"):
            store.write_text(f"{root}/{path}", "")
        assert [(folder, entry.name) for folder, entry in walk_files(store, root)] == [
            ("", "one"),
            ("day=1", "two"),
            ("_id=2/day=3", "three"),
        ]

    def test_a_lock_lets_one_thread_in(self, store: Store, root: str):
        """The second enters when the first leaves."""
        order: list[str] = []
        inside = threading.Event()

        def second() -> None:
            assert inside.wait(30)
            with hold_lock(store, f"{root}/lock"):
                order.append("second")

        thread = threading.Thread(target=second)
        thread.start()
        with hold_lock(store, f"{root}/lock"):
            inside.set()
            thread.join(0.3)
            order.append("first")
        thread.join(30)
        assert order == ["first", "second"]


def _create(path: str, text: str) -> bool:
    return LocalStore().create_exclusive(path, text)


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_of_many_that_create_a_file_one_wins(pool: type, tmp_path: Path):
    """And its text is there, whole."""
    processes = {"mp_context": get_context("spawn")} if pool is ProcessPoolExecutor else {}
    texts = [str(number) * 1000 for number in range(8)]
    with pool(4, **processes) as executor:
        for turn in range(5):
            path = f"{tmp_path}/{turn}.json"
            won = list(executor.map(_create, [path] * 8, texts))
            assert won.count(True) == 1
            assert LocalStore().read_text(path) == texts[won.index(True)]
            assert len(LocalStore().list(str(tmp_path))) == turn + 1


def test_exchange_swaps_folders(tmp_path: Path):
    """In one step, where the system can do that."""
    store = LocalStore()
    store.write_text(f"{tmp_path}/a/one", "")
    store.write_text(f"{tmp_path}/b/two", "")
    done = store.exchange(f"{tmp_path}/a", f"file://{tmp_path}/b")
    assert [entry.name for entry in store.list(f"{tmp_path}/a")] == ["two" if done else "one"]


@pytest.mark.parametrize(
    ("url", "path"),
    [("/a/b", "/a/b"), ("file:///a/b", "/a/b"), ("file:/a/b", "/a/b"), ("file:///a%20b", "/a%20b"), ("a", "a")],
)
def test_local_path_takes_the_scheme_off(url: str, path: str):
    """Nothing is decoded: Hadoop does not either."""
    assert str(make_local_path(url)) == path


def test_join_leaves_empty_names_out():
    """So "" is a folder itself."""
    assert join_path("/a/", "", "b") == "/a/b"


def test_local_paths_need_no_spark():
    """Nor does importing the store."""
    assert isinstance(open_store(None, "/tmp"), LocalStore)
    assert isinstance(open_store(None, "file:///tmp"), LocalStore)


@pytest.mark.spark
def test_a_path_without_scheme_is_on_sparks_default_file_system(spark: SparkSession):
    """Which is local here; any other scheme is Hadoop's."""
    assert isinstance(open_store(spark, "/tmp"), LocalStore)
    assert isinstance(open_store(spark, "hdfs://name/tmp"), HadoopStore)
