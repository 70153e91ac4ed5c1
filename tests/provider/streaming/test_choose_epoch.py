"""What a launch task asks for, and how long the flow's executors wait for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.provider.streaming.choose_epoch import fingerprint_source, make_limits


@pytest.mark.parametrize(("trigger_s", "stuck_s"), [(10.0, 1800.0), (3600.0, 10_800.0)])
def test_a_graph_with_seldom_batches_has_time_for_one(trigger_s: float, stuck_s: float) -> None:
    assert make_limits(StreamSettings(600.0, 300.0, trigger_s)).stuck_s == stuck_s


@pytest.mark.parametrize(
    ("options", "is_read_as_before"),
    [
        ({"maxFilesPerTrigger": "9"}, True),
        ({"MAXBYTESPERTRIGGER": "1g"}, True),
        ({"maxOffsetsPerTrigger": "10"}, True),
        ({"mode": "FAILFAST"}, False),
        ({"rowsPerBatch": "10"}, False),
    ],
)
def test_how_much_of_a_source_is_read_at_once_is_no_other_source(options: dict[str, str], is_read_as_before: bool):
    source = SourceSpec("clicks", "parquet", "ts", "/in", "ts timestamp")
    same = fingerprint_source(replace(source, options=options), {}) == fingerprint_source(source, {})
    assert same == is_read_as_before
