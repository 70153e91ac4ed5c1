"""An executor's process is killed before each line that it writes, in each state: the next one ends with the same log.

::

    a flow on real files ── executor: draft ─ link ─ draft ─ ..       its first line is its last, the second one is, ..
                                        ^ kill -9
                            another goes on from whatever is there
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.switch.advising.advice import Command, Deploy, Halt, Wanted
from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.inbox.entries import Held
from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.inbox_log import InboxLog
from airflow_dagsched.switch.log.signs_files import place_order
from airflow_dagsched.switch.records import encode_record
from airflow_dagsched.switch.state import State, find_state
from tests.faults.combinations import list_states
from tests.switch.drawn import make_batch, make_started
from tests.switch.inbox.test_hold import route
from tests.switch.inbox.test_routing import FIRST_INBOX, SECOND, SOURCES
from tests.switch.test_executor import NOW, Site, want
from tests.switch.test_flow_log import add

pytestmark = pytest.mark.faults

WRITES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir"}


class Flow(Site):
    """As that, and its drivers take a moment to start: those are a lease until they say more."""

    def do(self, command: Command) -> bool:
        self.done.append(command)
        if isinstance(command, Deploy):
            self.set_lease(command.epoch, NOW + 10)
        if isinstance(command, Halt):
            self.set_lease(command.epoch, 0)
        return True


@dataclass(frozen=True)
class Scene:
    """What happens in a flow, and what executors are asked for then."""

    happen: Callable[[Flow], object] = lambda _: None
    wanted: Wanted | None = None


def give_up_third(flow: Flow) -> None:
    place_order(flow.flow.name_epoch("folder3"), "abort", "a test", NOW, "it is not wanted")


SCENES = (
    Scene(wanted=want(1)),
    Scene(lambda flow: add(flow.executor.log, make_started(1, at=NOW), make_batch(1, 0, at=NOW))),
    Scene(lambda flow: add(flow.executor.log, make_batch(1, 1, 10, 20, x_newest={"in": 31.0}, at=NOW)), want(2)),
    Scene(
        lambda flow: add(flow.executor.log, make_started(2, at=NOW), make_batch(2, 0, watermark=20.0, kept=0, at=NOW))
    ),
    Scene(lambda flow: add(flow.executor.log, make_batch(1, 2, 30, 40, watermark=40.0, at=NOW))),
    Scene(wanted=want(3)),
    Scene(give_up_third),
)


def test_an_executor_is_killed_before_each_line_in_each_state(tmp_path: Path):
    flow, seen, kills = Flow(tmp_path / "flow"), set[State](), 0
    for scene in SCENES:
        scene.happen(flow)
        expected = end_undisturbed(tmp_path, scene)
        for broken in list_broken(tmp_path, scene):
            seen |= {find_now(broken)}
            kills += 1
            assert end(broken, scene) == expected
        end(flow, scene)
    print(f"{kills} kills")
    assert seen == list_states("executor at each line")
    assert check_log(flow.flow.log).violations == ()


def test_an_executor_is_killed_before_each_line_of_a_hold(tmp_path: Path):
    flow, scene = Flow(tmp_path / "flow"), Scene()
    add(flow.executor.log, *FIRST_INBOX, *SECOND)
    for epoch in (1, 2):
        flow.set_lease(epoch, 2_000.0)
    for source, newest in (("a", 34.0), ("b", 57.0)):
        route(flow.flow, source, newest)
    expected = end_undisturbed(tmp_path, scene)
    broken = list(list_broken(tmp_path, scene))
    assert len(broken) > len(SOURCES)
    for each in broken:
        assert end(each, scene) == expected
        for source in SOURCES:
            assert [type(entry) for entry in InboxLog(each.flow.name_inbox(source).log).read()].count(Held) == 1


def find_now(flow: Flow) -> State:
    """The state that the flow is in."""
    log = flow.join().log
    log.read()
    return find_state(log.story, look_at(flow.flow, log.story, NOW).held)


def end(flow: Flow, scene: Scene) -> list[str]:
    """Let an executor do all there is to do; the log then."""
    flow.settle(flow.executor, scene.wanted)
    return [encode_record(each) for each in flow.join().log.read()]


def end_undisturbed(tmp_path: Path, scene: Scene) -> list[str]:
    """The log as it is to be."""
    return end(copy_flow(tmp_path, "undisturbed"), scene)


def list_broken(tmp_path: Path, scene: Scene) -> Iterator[Flow]:
    """The flow, as an executor leaves it that is killed before its first line, its second, .. to its last."""
    for line in range(1000):
        flow = copy_flow(tmp_path, "broken")
        child = os.fork()
        if child == 0:
            advance_until_line(flow, scene, line)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        yield flow
    raise AssertionError("it never ends")


def copy_flow(tmp_path: Path, name: str) -> Flow:
    shutil.rmtree(tmp_path / name, ignore_errors=True)
    if (tmp_path / "flow").exists():
        shutil.copytree(tmp_path / "flow", tmp_path / name)
    return Flow(tmp_path / name)


def advance_until_line(flow: Flow, scene: Scene, line: int) -> None:
    """In a process of its own: it ends before the line that it would write next, or with all done."""
    lines = iter(range(line))

    def look_at_event(event: str, arguments: tuple[Any, ...]) -> None:
        if is_write(event, arguments) and next(lines, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look_at_event)
    try:
        flow.settle(flow.executor, scene.wanted)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - nothing of the test goes on in here
        traceback.print_exc()
    os._exit(1)


def is_write(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a file is about to be changed, by what Python tells of it."""
    if event == "open":
        return bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return event in WRITES
