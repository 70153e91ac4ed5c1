"""What a new graph's query need not read again: only what is known of its own name and its own files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.spark.steps.payload import Payload
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch
from airflow_dagsched.spark.stream_driver.graphs.preparing import find_read_files, limit_sources
from airflow_dagsched.spark.streams.file_lists import ReadFiles
from airflow_dagsched.switch.records import Epoch
from airflow_dagsched.switch.story import Story
from tests.streams.kit import QUERY, SOURCE, Flow, Graph, make_manifest
from tests.switch.drawn import make_batch, make_current, make_epoch, make_started, tell

OFFSET = {"logOffset": 14}


class Switch:
    """From epoch 1 to epoch 2, as records and folders say."""

    def __init__(self, folder: Path) -> None:
        self.flow = Flow(folder)
        self.old = self._ask(1, {SOURCE: {"logOffset": 3}})
        self.new = self._ask(2, {SOURCE: OFFSET})
        places = self.flow.places.name_epoch(self.new.x_folder)
        self.manifest = make_manifest(self.flow, places, Graph())
        self.checkpoint = self.flow.places.name_epoch(self.old.x_folder).name_checkpoint(QUERY)
        self.list = self.checkpoint / "sources" / SOURCE
        self.list.mkdir(parents=True)

    def _ask(self, epoch: int, start: dict[str, Any]) -> Epoch:
        return make_epoch(epoch, start=start, x_queries=(QUERY,), x_sources={SOURCE: "as it was"})

    def find(self) -> Any:
        return find_read_files(*self.tell(), self.manifest.queries[0])

    def tell(self) -> tuple[AcceptedEpoch, Story]:
        """The new epoch, and what the log says."""
        places = self.flow.places.name_epoch(self.new.x_folder)
        epoch = AcceptedEpoch(self.new, self.flow.places, places, self.manifest, Payload({}, {}), Masking())
        batch = make_batch(1, 0, query=QUERY)
        story = tell(self.old, make_started(1), batch, make_current(1), self.new)
        return epoch, story


@pytest.fixture
def switch(tmp_path: Path) -> Switch:
    return Switch(tmp_path)


def test_it_is_the_old_list_up_to_the_offset(switch: Switch):
    assert switch.find() == {SOURCE: ReadFiles(switch.list, 14)}


def test_a_query_that_the_old_graph_has_not_has_no_list(switch: Switch):
    """An offset that another query has read to is a place in a list of that one's."""
    switch.old = replace(switch.old, x_queries=("another", QUERY))
    assert switch.find() is not None
    switch.manifest = replace(switch.manifest, queries=(replace(switch.manifest.queries[0], step="by_user"),))
    assert switch.find() is None


@pytest.mark.parametrize("sources", [{}, {SOURCE: "otherwise"}])
def test_a_source_that_may_have_other_files_is_read_from_its_beginning(switch: Switch, sources: dict[str, str]):
    switch.new = replace(switch.new, x_sources=sources)
    assert switch.find() is None
    switch.old = replace(switch.old, x_sources=sources)
    assert (switch.find() is None) == (not sources)


@pytest.mark.parametrize("offset", [None, {"offset": 3}, {"logOffset": "14"}, 14])
def test_what_is_no_place_in_a_list_is_none(switch: Switch, offset: Any):
    switch.new = replace(switch.new, start={SOURCE: offset})
    assert switch.find() is None


def test_where_the_old_graph_began_is_a_place_in_its_list_only_if_that_began_as_a_copy(switch: Switch):
    """It is of a graph before it, whose files had other places if the old one has read all of them anew."""
    switch.old = replace(switch.old, start={SOURCE: OFFSET})
    assert switch.find() is None
    (switch.checkpoint / "prepared.json").write_text(json.dumps({SOURCE: OFFSET}))
    assert switch.find() is not None


def test_of_several_queries_each_has_an_offset_of_its_own(switch: Switch):
    switch.new = replace(switch.new, start={f"{QUERY}/{SOURCE}": OFFSET, f"another/{SOURCE}": {"logOffset": 9}})
    assert switch.find() == {SOURCE: ReadFiles(switch.list, 14)}


def test_one_source_of_which_it_is_not_known_is_enough_to_read_all(switch: Switch):
    kafka = SourceSpec("orders", "kafka", "ts")
    [source, join, out] = switch.manifest.steps
    orders = replace(source, id="orders")
    joined = replace(join, inputs=(*join.inputs, replace(join.inputs[0], step="orders")))
    switch.manifest = replace(
        switch.manifest, sources=(*switch.manifest.sources, kafka), steps=(source, orders, joined, out)
    )
    assert switch.find() is None


@pytest.mark.parametrize("source", [{"format": "avro"}, {"options": {"basePath": "/data"}}])
def test_a_source_that_can_not_be_had_without_rows_is_read_from_its_beginning(switch: Switch, source: dict[str, Any]):
    switch.manifest = replace(switch.manifest, sources=(replace(switch.manifest.sources[0], **source),))
    assert switch.find() is None


def test_a_checkpoint_that_is_gone_has_no_list(switch: Switch):
    switch.list.rmdir()
    assert switch.find() is None


def test_until_a_graph_is_the_owner_its_batches_are_bounded(switch: Switch):
    [source] = switch.manifest.sources
    switch.manifest = replace(switch.manifest, sources=(replace(source, options={}),))
    epoch, story = switch.tell()
    assert [each.options for each in limit_sources(epoch, story)] == [{"maxFilesPerTrigger": "10000"}]
    assert limit_sources(epoch, replace(story, owner=2)) == switch.manifest.sources
