"""Folders and block hosts of an HDFS, asked of a server that answers recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.model.dataflow import Block
from airflow_dagsched.plan.pruning.layout import Entry
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.clusters.spark_connection import Reached
from airflow_dagsched.provider.clusters.webhdfs import WebHdfsLister
from tests.testbed.answers import Asked, Said, answering

RECORDED = Path(__file__).parents[1] / "launch" / "recorded"
ROOT = "/webhdfs/v1/?op=GETFILESTATUS&user.name=ann"
NOWHERE = "http://127.0.0.1:9"


def said(content: object, **more: Any) -> Said:
    return Said(json.dumps(content).encode(), **more)


def refused(exception: str, status: int = 400) -> Said:
    content = {"RemoteException": {"exception": exception, "javaClassName": f"x.{exception}", "message": "no\n at x"}}
    return said(content, status=status)


def on(operation: str, path: str = "/t", **more: str) -> str:
    rest = "".join(f"&{name}={value}" for name, value in more.items())
    return f"/webhdfs/v1{path}?op={operation}&user.name=ann{rest}"


def names(*found: tuple[str, str, int]) -> dict[str, Any]:
    statuses = [{"pathSuffix": name, "type": kind, "length": size} for name, kind, size in found]
    return {"FileStatuses": {"FileStatus": statuses}}


def page(remaining: int, *found: tuple[str, str, int]) -> Said:
    return said({"DirectoryListing": {"partialListing": names(*found), "remainingEntries": remaining}})


def located(*hosts: str) -> Said:
    block = {"block": {"numBytes": 7}, "locations": [{"hostName": host, "adminState": "NORMAL"} for host in hosts]}
    return said({"LocatedBlocks": {"fileLength": 7, "locatedBlocks": [block]}})


def locations(*hosts: str) -> Said:
    return said({"BlockLocations": {"BlockLocation": [{"length": 7, "hosts": hosts}]}})


def lister(*addresses: str) -> WebHdfsLister:
    extra = {"webhdfs": list(addresses), "answer_within_s": 0.2}
    return WebHdfsLister.of("hdfs://lake/t", Reached("c", "yarn", extra=extra))


def children(folder: str, *addresses: str) -> list[Entry]:
    with lister(*addresses) as hdfs:
        return hdfs.list_children(folder)


@pytest.fixture(autouse=True)
def ann(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")


def operations(asked: list[Asked]) -> list[str]:
    return [one.path.partition("op=")[2].partition("&")[0] for one in asked if "op=" in one.path]


def test_a_folder_in_pages_by_the_newer_operations() -> None:
    """a: w1 and w3, of which the NameNode says that w1 lives; hidden files are not looked at."""
    answers = {
        ROOT: said({}),
        on("LISTSTATUS_BATCH"): page(2, ("day=1", "DIRECTORY", 0), ("_SUCCESS", "FILE", 0)),
        on("LISTSTATUS_BATCH", startAfter="_SUCCESS"): page(0, ("a", "FILE", 7)),
        on("GETFILEBLOCKLOCATIONS", "/t/a"): locations("w1.example.com", "w3.example.com"),
        "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo": Said((RECORDED / "namenode_info.json").read_bytes()),
    }
    with answering(answers) as (url, asked):
        assert children("/t", url) == [
            Entry("day=1", is_folder=True),
            Entry("a", bytes=7, blocks=(Block(bytes=7, hosts=("w1.example.com",)),)),
        ]
    assert operations(asked) == ["GETFILESTATUS", "LISTSTATUS_BATCH", "LISTSTATUS_BATCH", "GETFILEBLOCKLOCATIONS"]


def test_an_older_server_is_asked_its_own_way_and_once_only_the_newer() -> None:
    answers = {
        ROOT: said({}),
        on("LISTSTATUS_BATCH"): refused("IllegalArgumentException"),
        on("LISTSTATUS"): said(names(("a", "FILE", 7))),
        on("GETFILEBLOCKLOCATIONS", "/t/a"): refused("IllegalArgumentException"),
        on("GET_BLOCK_LOCATIONS", "/t/a"): located("w1", "w2"),
    }
    with answering(answers) as (url, asked), lister(url) as hdfs:
        for _ in range(2):
            (entry,) = hdfs.list_children("/t")
            assert entry.blocks == (Block(bytes=7, hosts=("w1", "w2")),)
    twice = ["LISTSTATUS", "GET_BLOCK_LOCATIONS"]
    newer = ["GETFILESTATUS", "LISTSTATUS_BATCH", "LISTSTATUS", "GETFILEBLOCKLOCATIONS", "GET_BLOCK_LOCATIONS"]
    assert operations(asked) == newer + twice


def test_of_several_name_nodes_the_one_that_leads() -> None:
    leads = {ROOT: said({}), on("LISTSTATUS_BATCH"): page(0)}
    with answering({ROOT: refused("StandbyException", 403)}) as (a, _), answering(leads) as (b, _):
        assert children("/t", NOWHERE, a, b) == []
        with pytest.raises(ClusterUnknown, match=r"127.0.0.1:9/.*; .*StandbyException: no$"):
            children("/t", NOWHERE, a)


def test_a_missing_folder_is_no_empty_one_and_a_file_that_has_gone_has_no_blocks() -> None:
    gone = refused("FileNotFoundException", 404)
    answers = {
        ROOT: said({}),
        on("LISTSTATUS_BATCH"): page(0, ("a", "FILE", 7)),
        on("GETFILEBLOCKLOCATIONS", "/t/a"): gone,
        on("LISTSTATUS_BATCH", "/nothing"): gone,
    }
    with answering(answers) as (url, _):
        assert children("/t", url) == [Entry("a", bytes=7)]
        with pytest.raises(FileNotFoundError):
            children("/nothing", url)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Said(b"<html>", "text/html"), "it sent text/html, not JSON"),
        (Said(b"<html>", "text/html", 404), "status 404"),
        (Said(b"{}"), "it lists no folder"),
        (Said(after_s=1.0), "no whole answer came within 0.2 s"),
        (refused("AccessControlException", 403), "AccessControlException: no"),
    ],
)
def test_what_is_no_answer(answer: Said, reason: str) -> None:
    with (
        answering({ROOT: said({}), on("LISTSTATUS_BATCH"): answer}) as (url, _),
        pytest.raises(ClusterUnknown) as unknown,
    ):
        children("/t", url)
    assert str(unknown.value).endswith(f"gave no answer we can read: {reason}")


def test_where_to_ask() -> None:
    """The connection says; else the host of the table, at the default ports."""
    with WebHdfsLister.of("hdfs://lake:8020/t", Reached("c", "yarn")) as found:
        assert found.addresses == ("http://lake:9870", "http://lake:50070")
    with pytest.raises(ClusterUnknown, match="no NameNode is named: set the connection's extra 'webhdfs'"):
        WebHdfsLister.of("hdfs:///t", Reached("c", "yarn"))


def test_the_hook_lists_an_hdfs_by_http_and_all_else_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1234567")
    answers = {ROOT: said({}), on("LISTSTATUS_BATCH"): page(0, ("day=1", "DIRECTORY", 0))}
    with answering(answers) as (url, _):
        connection = {"conn_type": "spark", "host": "yarn", "extra": {"webhdfs": url}}
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(connection))
        hook = PlannerHook("cluster")
        with hook.listing("hdfs://lake/t") as (lister, root):
            assert (root, list(lister.list_children(root))) == ("/t", [Entry("day=1", is_folder=True)])
        with hook.listing(str(tmp_path)) as (lister, root):
            assert list(lister.list_children(root)) == [Entry("a", bytes=7)]
