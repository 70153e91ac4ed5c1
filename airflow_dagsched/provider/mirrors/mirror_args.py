"""How the scheduler hands mirrors and gates to the triggerer: all that a parse of the DAG file needs to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

if TYPE_CHECKING:
    from airflow.triggers.base import StartTriggerArgs

TRIGGER = "airflow_dagsched.provider.mirrors.mirror.MirrorTrigger"
START_TRIGGER = "airflow_dagsched.provider.mirrors.start.StartTrigger"
STREAM_TRIGGER = "airflow_dagsched.provider.mirrors.stream_mirror.StreamMirrorTrigger"


class MirrorArgs(Struct, frozen=True):
    """What a mirror's trigger knows from the DAG: its launch task's id, and its step."""

    launch: str
    step: str
    others: tuple[str, ...] = ()
    """Launch tasks that may run the step as well."""


class StartArgs(Struct, frozen=True):
    """What a gate's trigger knows from the DAG: it waits for one of these launch tasks to begin."""

    launch: str
    others: tuple[str, ...] = ()

    @property
    def launches(self) -> tuple[str, ...]:
        """All of them."""
        return (self.launch, *self.others)


def make_trigger_args(args: MirrorArgs) -> StartTriggerArgs:
    """How a mirror is started, without a worker."""
    return _start_from_trigger(TRIGGER, collect_kwargs(args))


def make_start_args(args: StartArgs) -> StartTriggerArgs:
    """How a gate is started, without a worker."""
    return _start_from_trigger(START_TRIGGER, collect_kwargs(args))


class StreamArgs(Struct, frozen=True):
    """What the trigger of a stream's mirror knows from the DAG: its launch task's id, its step, where the stream is."""

    launch: str
    step: str
    work_dir: str
    flow: str


def make_stream_args(args: StreamArgs) -> StartTriggerArgs:
    """How the mirror of a stream's step is started, without a worker."""
    return _start_from_trigger(STREAM_TRIGGER, asdict(args))


def collect_kwargs(args: MirrorArgs | StartArgs) -> dict[str, Any]:
    """As they are in the serialized DAG: without what most DAGs have no use for."""
    found = asdict(args)
    others = list(found.pop("others"))
    return {**found, **({"others": others} if others else {})}


def _start_from_trigger(trigger: str, arguments: dict[str, Any]) -> StartTriggerArgs:
    from airflow.triggers.base import StartTriggerArgs

    # no time-out: an end comes with the launch task's
    return StartTriggerArgs(trigger_cls=trigger, trigger_kwargs=arguments, next_method="execute", timeout=None)
