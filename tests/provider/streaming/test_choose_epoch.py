"""What a launch task asks for, and how long the flow's executors wait for it."""

from __future__ import annotations

import pytest

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.provider.streaming.choose_epoch import make_limits


@pytest.mark.parametrize(("trigger_s", "stuck_s"), [(10.0, 1800.0), (3600.0, 10_800.0)])
def test_a_graph_with_seldom_batches_has_time_for_one(trigger_s: float, stuck_s: float) -> None:
    assert make_limits(StreamSettings(600.0, 300.0, trigger_s)).stuck_s == stuck_s
