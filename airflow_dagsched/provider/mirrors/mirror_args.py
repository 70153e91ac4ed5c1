"""How the scheduler hands mirrors and gates to the triggerer: all that a parse of the DAG file needs to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

if TYPE_CHECKING:
    from airflow.triggers.base import StartTriggerArgs

TRIGGER = "airflow_dagsched.provider.mirrors.mirror.MirrorTrigger"
START_TRIGGER = "airflow_dagsched.provider.mirrors.start.StartTrigger"


class MirrorArgs(Struct, frozen=True):
    """What a mirror's trigger knows from the DAG: its launch task's id, and its step."""

    launch: str
    step: str


def make_trigger_args(launch: str, step: str) -> StartTriggerArgs:
    """How the mirror of ``step`` is started, without a worker."""
    return _start_from_trigger(TRIGGER, asdict(MirrorArgs(launch, step)))


def make_start_args(launch: str) -> StartTriggerArgs:
    """How the gate that waits for ``launch`` to begin is started, without a worker."""
    return _start_from_trigger(START_TRIGGER, {"launch": launch})


def _start_from_trigger(trigger: str, arguments: dict[str, Any]) -> StartTriggerArgs:
    from airflow.triggers.base import StartTriggerArgs

    # no time-out: an end comes with the launch task's
    return StartTriggerArgs(trigger_cls=trigger, trigger_kwargs=arguments, next_method="execute", timeout=None)
