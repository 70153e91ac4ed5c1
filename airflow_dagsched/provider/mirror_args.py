"""How the scheduler hands a mirror to the triggerer: all that a parse of the DAG file needs to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

if TYPE_CHECKING:
    from airflow.triggers.base import StartTriggerArgs

TRIGGER = "airflow_dagsched.provider.mirror.MirrorTrigger"


class MirrorArgs(Struct, frozen=True):
    """What a mirror's trigger knows from the DAG: its launch task's id, and its step."""

    launch: str
    step: str


def trigger_args(launch: str, step: str) -> StartTriggerArgs:
    """How the mirror of ``step`` is started, without a worker."""
    from airflow.triggers.base import StartTriggerArgs

    return StartTriggerArgs(
        trigger_cls=TRIGGER, trigger_kwargs=asdict(MirrorArgs(launch, step)), next_method="execute", timeout=None
    )
