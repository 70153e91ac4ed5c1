"""Texts of the options, for sources that cannot be had here."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_dagsched.spark.streams.start_options import choose_limit, choose_start_options

DELTA = {"sourceVersion": 1, "reservoirId": "5a", "reservoirVersion": 7, "index": -1, "isStartingVersion": False}
ICEBERG = {"version": 1, "snapshot_id": 42, "position": 3, "scan_all_files": False}


@pytest.mark.parametrize(
    ("form", "offset", "options"),
    [
        ("kafka", {"clicks": {"1": 5, "0": 23}}, {"startingOffsets": '{"clicks": {"0": 23, "1": 5}}'}),
        ("rate-micro-batch", {"offset": 10, "timestamp": 2000}, {"startTimestamp": "2000"}),
        ("delta", DELTA, {"startingVersion": "7"}),
        ("delta", {**DELTA, "index": 4}, {"startingVersion": "7"}),
        ("delta", {**DELTA, "isStartingVersion": True}, {}),
        ("iceberg", ICEBERG, {}),
        ("parquet", {"logOffset": 3}, {}),
        ("kafka", None, {"startingOffsets": "earliest"}),
        ("delta", None, {}),
    ],
)
def test_a_source_begins_at_an_offset_or_before_it(form: str, offset: Any, options: dict[str, str]) -> None:
    assert choose_start_options(form, offset) == options


@pytest.mark.parametrize(
    ("form", "options", "limit"),
    [
        ("parquet", {"mode": "FAILFAST"}, {"maxFilesPerTrigger": "10000"}),
        ("json", {"maxfilespertrigger": "5"}, {}),
        # Spark refuses both.
        ("json", {"maxBytesPerTrigger": "1g"}, {}),
        ("kafka", {}, {}),
        ("delta", {}, {}),
    ],
)
def test_a_batch_of_files_is_bounded_if_the_author_has_not_bound_it(
    form: str, options: dict[str, str], limit: dict[str, str]
) -> None:
    assert choose_limit(form, options) == limit
