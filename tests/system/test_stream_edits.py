"""Edits of a stream's DAG file in a real Airflow: one that fails, one that mends it, one while the DAG is paused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from airflow_dagsched.switch.story import Story
from demo.rest import Run, until
from tests.streams.rows import Row
from tests.system.lab import PATIENCE_S, Lab, kill
from tests.system.streams import LAUNCH, MIRRORS, Stream, open_stream

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]

SETTINGS = {"AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "3", "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3"}
GROUPS = "clicks.groupBy("
BROKEN = 'clicks.withColumn("user", F.udf(lambda user: str(1 / 0))("user")).groupBy('
MENDED = """clicks.where("user <> 'user 0'").groupBy("""


def keep_others(row: Row) -> bool:
    """The filter of the mended graph."""
    return row.user != "user 0"


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Stream]:
    with open_stream(tmp_path, SETTINGS) as stream:
        stream.edit("schedule=None", 'schedule=StreamEpochs("clicks")')
        yield stream


def wait_for_owner(stream: Stream, epoch: int) -> None:
    """Until the epoch has taken over, and has had batches since."""
    stream.flow_until(f"epoch {epoch} as the owner", lambda: stream.story.owner == epoch)
    stream.goes_on()


def wait_for_abort(stream: Stream, epoch: int) -> None:
    def is_given_up(story: Story) -> bool:
        return epoch in story.epochs and story.epochs[epoch].aborted is not None

    stream.flow_until(f"the end of epoch {epoch}", lambda: is_given_up(stream.story))


def wait_until_parsed(lab: Lab, dag_file: Path) -> None:
    """Until Airflow has the DAG as it is in the file now."""
    written = dag_file.stat().st_mtime

    def is_parsed() -> bool | None:
        parsed = lab.client.call("GET", "/api/v2/dags/clicks/details")["last_parsed_time"]
        return datetime.fromisoformat(parsed).timestamp() > written or None

    until("the edited file parsed", is_parsed, PATIENCE_S)


def count_runs(stream: Stream) -> int:
    return len(stream.lab.client.runs("clicks"))


def test_an_edit_that_fails_leaves_the_old_graph_and_one_that_mends_it_takes_over(stream: Stream) -> None:
    """
    ::

        epoch 1 ═══════════════╪══╗ fence
        epoch 2   ✗ first batch    ║
        epoch 3              ──┴──╚══════ paused: ✗ driver ...... unpaused ══╗ fence
        epoch 4                                                    ──────────╚═════
    """
    lab = stream.lab
    stream.feed(4)
    lab.client.wait_for_dag("clicks")
    lab.client.pause("clicks", paused=False)
    stream.wait("a batch", lambda: stream.count_batches() > 0)
    old = stream.find_run(1)

    stream.edit(GROUPS, BROKEN)
    wait_for_abort(stream, 2)
    red = stream.find_run(2)
    assert lab.end(red) == "failed"
    assert "ZeroDivisionError" in lab.last_log(red, LAUNCH)
    assert any("ZeroDivisionError: division by zero" in lab.last_log(red, mirror) for mirror in MIRRORS)
    assert lab.states(old)[LAUNCH] == "deferred"
    stream.goes_on()

    stream.edit(BROKEN, MENDED)
    wait_for_owner(stream, 3)
    assert (lab.end(old), lab.client.run_state(red)) == ("success", "failed")
    mended = stream.find_run(3)
    lab.until_state(mended, LAUNCH, "deferred")

    paused_neither_switches_nor_restarts(stream, mended)

    lab.client.pause("clicks", paused=False)
    wait_for_owner(stream, 4)
    assert lab.end(mended) == "success"
    # The graph of epoch 3 was started again, as it has the windows up to the fence; nothing of it was a try.
    assert stream.count_tries(mended) == 1
    assert count_runs(stream) == 4
    stream.stop()
    assert lab.end(stream.find_run(4)) == "success"
    stream.prove_table({3: keep_others})


def paused_neither_switches_nor_restarts(stream: Stream, run: Run) -> None:
    lab = stream.lab
    lab.client.pause("clicks", paused=True)
    stream.edit(MENDED, GROUPS)
    wait_until_parsed(lab, stream.dag_file)
    stream.goes_on()
    kill(stream.find_drivers())
    stream.wait("the end of the driver", lambda: not stream.find_drivers())
    lab.until_state(run, LAUNCH, "scheduled")
    assert (stream.story.owner, max(stream.story.epochs), count_runs(stream)) == (3, 3, 3)
    said = stream.tell_status()
    assert "paused: neither switches nor restarts until `airflow dags unpause clicks`" in said
    assert "no driver of epoch 3 runs" in said
    assert all(lab.states(run)[mirror] == "deferred" for mirror in MIRRORS)
    stream.wait("what the mirrors say", lambda: all("paused" in lab.last_log(run, mirror) for mirror in MIRRORS))
    assert not stream.find_drivers()
