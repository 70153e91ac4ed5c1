"""A launch task of a stream at work: how it looks at its flow, and how it ends where Airflow says so."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from airflow_dagsched.provider.runtime.launch_task import StreamTask
from airflow_dagsched.provider.spec.work_dir import parse_local_root
from airflow_dagsched.provider.streaming.choose_epoch import make_limits, read_wishes
from airflow_dagsched.provider.streaming.ending import ask_state, is_ended, order_end
from airflow_dagsched.provider.streaming.find_room import Beside
from airflow_dagsched.provider.streaming.start_driver import Starter, start_detached
from airflow_dagsched.switch.advising.advice import Advice, Deploy, Wanted
from airflow_dagsched.switch.log.executor import Executor, look_at
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces, name_flow
from airflow_dagsched.switch.records import Stopped
from airflow_dagsched.switch.say import tell_reason
from airflow_dagsched.switch.signs import Follower
from airflow_dagsched.switch.story import Story

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.spec.stream_spec import StreamSpec

log = logging.getLogger(__name__)

STEP_S = 1.0


@dataclass(eq=False)
class Launching:
    """A launch task of a stream, and the flow that it has to do with."""

    task: StreamTask
    context: Context
    flow: FlowPlaces
    executor: Executor
    starter: Starter
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    said: str = field(default="")
    """What is waited for, as it was logged last."""
    resumed: dict[int, Stopped] = field(default_factory=dict)
    """Epoch that this try has started again -> the end that it had."""

    @classmethod
    def open(
        cls,
        task: StreamTask,
        context: Context,
        start: Callable[[EpochPlaces, Path], int] = start_detached,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Launching:
        """At the beginning of a try, or when the task was woken."""
        spec = task.spec.flow
        flow = name_flow(parse_local_root(spec.work_dir), context["ti"].dag_id, spec.name)
        starter = Starter(flow, lambda: executor.log.story, clock, start)
        abilities: dict[type, Any] = {Deploy: starter.deploy}
        executor = Executor(flow.folder, abilities, make_limits(read_stream(task).settings), clock)
        return cls(task, context, flow, executor, starter, clock, sleep)

    @property
    def stream(self) -> StreamSpec:
        """What is declared of the stream."""
        return read_stream(self.task)

    @property
    def run_id(self) -> str:
        """Of the task's run."""
        return str(self.context["ti"].run_id)

    @property
    def wishes(self) -> frozenset[str]:
        """What the run's configuration says of its switch."""
        return read_wishes(getattr(self.context["dag_run"], "conf", None))

    @property
    def follower(self) -> Follower:
        """This task, as it follows an epoch."""
        return Follower(self.run_id, int(self.context["ti"].max_tries))

    @property
    def story(self) -> Story:
        """What the log says, at the last look."""
        return self.executor.log.story

    def step(self, epoch: int = 0, wanted: Wanted | None = None) -> Advice:
        """Look at the flow, do what can be done, and say what is waited for.

        :param epoch: that the task works for; 0: there is none yet.
        Raises ``AirflowException`` where Airflow has ended this task.
        """
        if self.task.stopped:
            self._leave(epoch)
        advice = self.executor.step(wanted)
        said = "; ".join(map(tell_reason, advice.waits_for))
        if said and said != self.said:
            log.info("%s: %s", advice.state, said)
        self.said = said
        return advice

    def is_held(self, epoch: int) -> bool:
        """Whether a driver works for the epoch, or starts."""
        return epoch in look_at(self.flow, self.story, self.clock()).held

    def look(self) -> Beside:
        """What runs of the flow now."""
        self.executor.log.read()
        return Beside(self.flow, self.story, look_at(self.flow, self.story, self.clock()).held)

    def pause(self) -> None:
        """Until the next look."""
        self.sleep(STEP_S)

    def _leave(self, epoch: int) -> None:
        """A worker that is shut down ends this task like a person does: Airflow knows which it was."""
        ti = self.context["ti"]
        try:
            is_over = is_ended(ask_state(ti.dag_id, ti.run_id, ti.task_id))
        except Exception as error:  # noqa: BLE001 - whatever it is: the stream goes on
            log.warning("whether a person ended this task is not known, so the stream goes on: %s", error)
            is_over = False
        if is_over and epoch:
            order_end(self.flow, self.executor.log, epoch, self.run_id, self.clock())
        raise AirflowException("this task was ended")


def read_stream(task: StreamTask) -> StreamSpec:
    """What is declared of the stream of a launch task, which is one of a stream."""
    stream = task.spec.flow.stream
    assert stream is not None
    return stream
