"""A stream in a real Airflow, with a real Spark: its driver outlives the task, mirrors wait without a worker, and the
stream ends with the task when a person says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from airflow_dagsched.switch.log.signs_files import read_sign
from tests.system.lab import PATIENCE_S, gone
from tests.system.streams import LAUNCH, MIRRORS, Stream, open_stream, wait_stopped

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    with open_stream(tmp_path) as stream:
        yield stream


def find_driver(stream: Stream) -> psutil.Process:
    """As it says itself."""
    sign = read_sign(stream.flow.name_epoch(stream.story.epochs[1].record.x_folder))
    assert sign is not None
    return psutil.Process(sign.pid)


def test_the_driver_outlives_its_task_and_ends_with_a_person_s_word(stream: Stream) -> None:
    lab, run = stream.lab, stream.start()
    stream.wait("a batch", lambda: stream.count_batches() > 0)
    for mirror in MIRRORS:
        lab.until_state(run, mirror, "deferred")
    application = stream.story.epochs[1].started.application  # type: ignore[union-attr]
    assert lab.client.xcom(run, LAUNCH, "epoch") == {"epoch": 1, "after": 0, "application": application}
    driver = find_driver(stream)
    assert lab.home not in [Path(each.cwd()) for each in driver.parents() if each.pid == lab.airflow.pid]
    stream.goes_on()

    # Cleared: it stops after its batch, and goes on from its checkpoints.
    lab.client.clear(run, [LAUNCH])
    assert gone([driver], PATIENCE_S)
    lab.until_state(run, LAUNCH, "deferred")
    stream.wait("another driver", lambda: stream.story.epochs[1].stopped is None)
    stream.goes_on()
    second = find_driver(stream)
    assert second.pid != driver.pid

    # Lost: started again by the trigger's word, with no try used.
    tries = stream.count_tries(run)
    second.kill()
    stream.wait("a third driver", lambda: stream.story.epochs[1].started.x_pid not in (0, second.pid))  # type: ignore[union-attr]
    stream.goes_on()
    assert stream.count_tries(run) == tries

    # Marked failed: it stops, and so do its mirrors.
    third = find_driver(stream)
    lab.client.set_state(run, LAUNCH, "failed")
    wait_stopped(stream, 1, [third])
    for mirror in MIRRORS:
        lab.until_state(run, mirror, "failed")
    stream.prove_table()
