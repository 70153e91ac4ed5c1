"""Records come out of their JSON as they went in, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.switch.log.log_rules import FLOW_RULES, load_file
from airflow_dagsched.switch.records import (
    KINDS,
    Aborted,
    Batch,
    Current,
    Drained,
    Epoch,
    Fence,
    GarbledLog,
    Record,
    Started,
    Stopped,
    encode_record,
)


def parse_record(text: str, name: str) -> Record:
    """As a log reads a file of its own."""
    return FLOW_RULES.fit(load_file(text, Path(name)), name)


texts = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=5)
numbers = st.integers(1, 10**6)
moments = st.floats(0, 4e9)
windows = st.none() | moments
offsets = st.none() | st.dictionaries(texts, st.integers(0, 99) | texts, max_size=2)
numbered = {"n": numbers, "at": moments}
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(
        Epoch,
        **numbered,
        epoch=numbers,
        fingerprint=texts,
        run_id=texts,
        channel=st.sampled_from(["replay", "inbox", "carry"]),
        start=st.none() | st.dictionaries(texts, offsets, max_size=2),
        boundary=windows,
        x_queries=st.lists(texts, max_size=2).map(tuple),
        x_window=moments,
        x_overlap=st.sampled_from(["beside", "sequential", "cold"]),
    ),
    st.builds(Started, **numbered, epoch=numbers, application=texts, x_workers=st.lists(texts, max_size=2).map(tuple)),
    st.builds(
        Batch,
        **numbered,
        epoch=numbers,
        query=texts,
        batch=numbers,
        first=windows,
        last=windows,
        rows=numbers,
        kept=numbers,
        watermark=moments,
        files=st.lists(texts, max_size=2).map(tuple),
        x_begin=st.dictionaries(texts, offsets, max_size=2),
        x_newest=st.dictionaries(texts, windows, max_size=2),
        x_tag=texts,
    ),
    st.builds(
        Fence,
        **numbered,
        from_=numbers,
        to=numbers,
        upto=moments,
        x_upto=st.dictionaries(texts, moments, max_size=2),
    ),
    st.builds(Drained, **numbered, epoch=numbers),
    st.builds(Current, **numbered, epoch=numbers),
    st.builds(Stopped, **numbered, epoch=numbers, reason=texts, x_cause=st.sampled_from(["person", "author"])),
    st.builds(Aborted, **numbered, epoch=numbers, reason=texts),
)
FENCE = {"n": 3, "at": 1.5, "kind": "fence", "from": 1, "to": 2, "upto": 600}


@given(records)
def test_a_record_comes_out_as_it_went_in(record: Record):
    text = encode_record(record)
    assert "\n" not in text
    assert parse_record(text, "file") == record


@given(records)
def test_what_is_not_ours_and_says_nothing_is_not_written(record: Record):
    raw = json.loads(encode_record(record))
    assert KINDS[raw["kind"]] is type(record)
    assert [key for key, value in raw.items() if key.startswith("x_") and value in ("", {}, [], None, 0)] == []


def test_a_fence_is_written_as_it_is_agreed():
    """Whole numbers without a point: a window has one name."""
    record = Fence(n=3, at=1.5, from_=1, to=2, upto=600.0)
    assert json.loads(encode_record(record)) == FENCE
    assert '"upto": 600}' in encode_record(record)


def test_offsets_are_left_as_their_source_wrote_them():
    record = Epoch(n=1, at=1, epoch=1, fingerprint="f", run_id="r", start={"s": {"at": 2.0}})
    assert '{"at": 2.0}' in encode_record(record)


def test_keys_of_others_are_passed_over():
    assert parse_record(json.dumps({**FENCE, "x_theirs": [1]}), "file") == Fence(n=3, at=1.5, from_=1, to=2, upto=600)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "wish"},
        {"kind": ["fence"]},
        {"theirs": 1},
        {"upto": "600"},
        {"upto": None},
        {"upto": float("nan")},
        {"from": 1.5},
        {"from": True},
    ],
)
def test_anything_else_is_refused_by_the_name_of_its_file(change: dict[str, object]):
    with pytest.raises(GarbledLog, match=r"^the/file: "):
        parse_record(json.dumps({**FENCE, **change}), "the/file")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", json.dumps(FENCE)[:-1], "[" * 100_000])
def test_a_torn_text_is_refused(text: str):
    with pytest.raises(GarbledLog):
        parse_record(text, "file")


def test_a_missing_field_is_refused():
    for key in FENCE:
        with pytest.raises(GarbledLog):
            parse_record(json.dumps({name: value for name, value in FENCE.items() if name != key}), "file")
