"""From the ends of a group's steps to the end of its launch task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_dagsched.launch.protocol.events import StepDone


def list_failed(ends: Iterable[StepDone]) -> list[StepDone]:
    """The ends that make a launch task red."""
    return [done for done in ends if done.state in ("failed", "upstream_failed")]


def raise_for(bad: Sequence[StepDone]) -> None:
    """A failed step may be mended by a retry; a step whose upstream failed may not."""
    if not bad:
        return
    text = "; ".join(f"{done.step}: {done.failure.message if done.failure else done.reason}" for done in bad)
    if all(done.state == "upstream_failed" for done in bad):
        raise AirflowFailException(text)
    raise AirflowException(text)


def is_fresh(done: StepDone, emitted: frozenset[str]) -> bool:
    """Whether its asset event is still to be sent: ``emitted`` are the steps whose was."""
    return done.state == "success" or (done.state == "reused" and done.step not in emitted)


def report_measured(done: StepDone) -> dict[str, Any]:
    """What the launch task returns of a step."""
    return {"state": done.state, "rows": done.rows, "bytes": done.bytes, "seconds": done.seconds}
