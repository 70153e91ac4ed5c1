"""Executors on real files: whoever is there takes a switch on, with what it can do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from airflow_dagsched.switch.advising.advice import Command, Deploy, FinishMoves, Halt, Wanted
from airflow_dagsched.switch.log.executor import Ability, Executor, look_at
from airflow_dagsched.switch.log.signs_files import place_order, write_sign
from airflow_dagsched.switch.places import name_flow
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.signs import Sign
from airflow_dagsched.switch.state import find_state
from airflow_dagsched.switch.story import Story
from tests.switch.drawn import make_batch, make_started, number

READS = {"out": ("in",)}
NOW = 1_000.0


def want(epoch: int) -> Wanted:
    return Wanted(f"code {epoch}", f"run {epoch}", f"folder{epoch}", READS, window=10.0)


class Site:
    """A flow, and drivers that are a lease and no more."""

    def __init__(self, work_dir: Path) -> None:
        self.flow = name_flow(work_dir, "dag", "flow")
        self.executor = self.join(Deploy, Halt, FinishMoves)
        self.done: list[Command] = []

    def join(self, *kinds: type) -> Executor:
        """Another process that can do these."""
        abilities: dict[type, Ability] = dict.fromkeys(kinds, self.do)
        return Executor(self.flow.folder, abilities, clock=lambda: NOW)

    def do(self, command: Command) -> bool:
        self.done.append(command)
        if isinstance(command, Deploy):
            self.set_lease(command.epoch, NOW + 10)
            self.add(make_started(command.epoch))
        if isinstance(command, Halt):
            self.set_lease(command.epoch, 0)
        return True

    def set_lease(self, epoch: int, expires: float) -> None:
        folder = self.flow.name_leases(epoch)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "0000000001.json").write_text(json.dumps({"expires": expires}))

    def add(self, record: Record) -> None:
        self.executor.log.append(lambda story, n, at: number((record,), n)[0])

    def settle(self, executor: Executor, wanted: Wanted | None = None) -> Story:
        """Let it look until nothing comes of it."""
        for _ in range(20):
            before = executor.log.story.last, len(self.done)
            executor.step(wanted)
            if before == (executor.log.story.last, len(self.done)):
                return executor.log.story
        raise AssertionError("it never ends")


def test_an_executor_takes_a_flow_from_its_first_graph_to_its_second(tmp_path: Path):
    site = Site(tmp_path)
    assert find_state(site.settle(site.executor, want(1))) == "catching_up"
    site.add(make_batch(1, 0))
    assert site.settle(site.executor).owner == 1
    site.add(make_batch(1, 1, 10, 20, x_newest={"in": 31.0}))
    story = site.settle(site.executor, want(2))
    assert find_state(story) == "catching_up"
    assert story.epochs[2].record.boundary == 40.0
    site.add(make_batch(2, 0, watermark=20.0, kept=0))
    assert find_state(site.settle(site.executor)) == "fenced"
    site.add(make_batch(1, 2, 30, 40, watermark=40.0))
    story = site.settle(site.executor)
    assert (story.owner, find_state(story)) == (2, "steady")
    assert site.done == [Deploy(1), Deploy(2), FinishMoves(1), Halt(1)]


def test_what_a_process_can_not_do_it_leaves_to_others(tmp_path: Path):
    """It says nothing either of what only those can know who can do it."""
    site = Site(tmp_path)
    command = site.join()
    assert find_state(site.settle(command, want(1))) == "requested"
    site.settle(site.executor)
    site.add(make_batch(1, 0, 10, 20))
    site.settle(command)
    site.settle(command, want(2))
    site.settle(site.executor)
    site.add(make_batch(2, 0, watermark=20.0, kept=0))
    site.settle(command)
    site.add(make_batch(1, 1, watermark=20.0))
    assert find_state(site.settle(command)) == "fenced"
    assert find_state(site.settle(site.executor)) == "steady"


def test_of_two_that_look_at_once_one_adds_the_record(tmp_path: Path):
    site = Site(tmp_path)
    other = site.join()
    site.executor.log.read()
    other.step(want(1))
    site.executor.step(want(2))
    other.log.read()
    assert [each.record.run_id for each in other.log.story.epochs.values()] == ["run 1"]


def test_what_it_adds_is_not_of_a_time_before_what_is_there(tmp_path: Path):
    """Its clock was set back."""
    site = Site(tmp_path)
    site.settle(site.executor, want(1))
    site.executor.log.append(lambda story, n, at: number((make_batch(1, 0, at=NOW + 3600),), n)[0])
    assert site.settle(site.executor).owner == 1
    assert site.join().log.read()[-1].at == NOW + 3600


def test_a_pause_is_kept_until_its_file_goes(tmp_path: Path):
    site = Site(tmp_path)
    site.executor.step(want(1))
    pause = site.flow.name_epoch("folder1").orders / "pause-requested.json"
    pause.parent.mkdir(parents=True)
    pause.touch()
    assert find_state(site.settle(site.executor)) == "requested"
    assert site.executor.step().waits_for == (Reason("paused", text="requested"),)
    pause.unlink()
    assert find_state(site.settle(site.executor)) == "catching_up"


def test_state_is_handed_on_by_what_spark_has_committed_on_disk(tmp_path: Path):
    site = Site(tmp_path)
    site.settle(site.executor, want(1))
    site.add(make_batch(1, 0, 10, 20))
    site.settle(site.executor)
    site.executor.step(replace(want(2), channel="carry"))
    site.set_lease(2, NOW + 10)
    write_sign(site.flow.name_epoch("folder2"), Sign(2, "app 2", NOW, "ready"))
    assert find_state(site.settle(site.join())) == "fenced"
    site.settle(site.executor)
    assert Halt(1) not in site.done
    commits = site.flow.name_epoch("folder1").name_commits("out")
    commits.mkdir(parents=True)
    (commits / ".0.crc").touch()
    site.settle(site.executor)
    assert Halt(1) not in site.done
    (commits / "0").touch()
    story = site.settle(site.executor)
    assert (site.done[1:], story.owner) == ([Halt(1), FinishMoves(1)], 2)


def test_who_routes_into_the_inbox_is_seen_by_its_lease(tmp_path: Path):
    site = Site(tmp_path)
    site.executor.step(replace(want(1), channel="inbox"))
    story = site.executor.log.story
    assert 0 not in look_at(site.flow, story, NOW).held
    site.set_lease(0, NOW + 10)
    assert 0 in look_at(site.flow, story, NOW).held


def test_an_order_is_seen_where_people_leave_it(tmp_path: Path):
    site = Site(tmp_path)
    site.settle(site.executor, want(1))
    site.add(make_batch(1, 0))
    site.settle(site.executor)
    place_order(site.flow.name_epoch("folder1"), "stop", "ann", NOW, "maintenance")
    story = site.settle(site.executor)
    assert story.epochs[1].stopped is not None
    assert story.epochs[1].stopped.reason == "ordered: maintenance"
    assert site.done[-1] == Halt(1)
