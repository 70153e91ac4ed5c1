"""What one epoch's misfortune does to the others in its application: nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.protocol.events import Failure
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.streams.manifest import QuerySpec
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.spark.files.store import make_local_path, name_local
from airflow_dagsched.spark.stream_driver.application import StreamApplication
from airflow_dagsched.spark.stream_driver.epoch_lease import EpochLease
from airflow_dagsched.spark.stream_driver.epoch_run import EpochRun
from airflow_dagsched.spark.stream_driver.executors import count_enough
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import accept_epoch
from airflow_dagsched.spark.stream_driver.mishaps import Stuck
from airflow_dagsched.spark.stream_driver.sinks import NO_WINDOWS, open_target
from airflow_dagsched.spark.streams import targets
from airflow_dagsched.spark.streams.drafts import NEW, place_aside
from airflow_dagsched.spark.streams.mover import list_due
from airflow_dagsched.switch.advising.advice import FinishMoves
from airflow_dagsched.switch.drafts import DraftName
from airflow_dagsched.switch.log.leases import list_held
from airflow_dagsched.switch.log.signs_files import place_order, read_ended, read_sign, write_follower
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.signs import Follower
from tests.spark.stream_driver.played import Application, PlayedSpark
from tests.streams.kit import QUERY, SOURCE, Graph
from tests.switch.drawn import make_batch, make_started


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    made = Application(tmp_path, PlayedSpark(("spark.sql.extensions",)))
    yield made
    made.under_test.close()


def test_a_setting_that_spark_refuses_ends_the_edit_alone(application: Application):
    application.real = (2,)
    secret = {"spark.sql.extensions": "jdbc:x://h?password=guess-it"}
    new = application.flow.ask(Graph("second", session=secret))
    application.step(3)
    aborted = application.story.epochs[2].aborted
    assert aborted is not None
    assert "[CANNOT_MODIFY_CONFIG] spark.sql.extensions" in aborted.reason
    assert "guess-it" not in aborted.reason + new.exit.read_text()
    assert aborted.x_cause == "author"
    assert not application.runs[1].is_over
    ended = read_ended(new)
    assert ended is not None
    assert (ended.code, ended.kind) == (1, "author")


def ask_in_turn(application: Application, **graph: Any) -> EpochPlaces:
    """A graph that there is room for only once the owner is gone; its fence is the next record."""
    in_turn = StreamSettings(10.0, 5.0, 0.2, overlap="sequential")
    return application.flow.ask(Graph("second", settings=in_turn, **graph))


def list_held_now(application: Application) -> frozenset[int]:
    places = {number: application.flow.places.name_epoch(each.record.x_folder)
              for number, each in application.story.epochs.items()}  # fmt: skip
    return list_held(application.flow.places, places, application.now)


def test_in_the_old_one_s_place_a_graph_starts_in_its_application(application: Application):
    """From the fence on nobody else can start it; not before the old one is gone does it begin."""
    ask_in_turn(application)
    application.step(3, seconds=1.0)
    assert (application.story.new is not None, list_held_now(application)) == (True, {1, 2})
    assert 2 not in application.runs
    sign = read_sign(application.places)
    assert sign is not None
    assert "the table gets nothing" in sign.waits_for
    application.add(make_batch(1, 1, query=QUERY, x_begin={SOURCE: None}, x_newest={SOURCE: 65.0}, watermark=60.0))
    application.step(6, seconds=0.5)
    assert (application.story.owner, application.runs[1].is_over, application.runs[2].is_over) == (2, True, False)
    assert (application.runs[1].is_kept, application.runs[2].is_kept, application.spark.cleanups) == (False, True, 1)
    assert not application.under_test.is_over


def test_a_graph_that_needs_an_application_of_its_own_is_left_to_it(application: Application):
    ask_in_turn(application, conf={"spark.driver.memory": "650m"})
    application.step(2, seconds=0.5)
    assert list_held_now(application) == {1}
    application.add(make_batch(1, 1, query=QUERY, x_begin={SOURCE: None}, x_newest={SOURCE: 65.0}, watermark=60.0))
    application.step(6, seconds=0.5)
    assert (application.story.owner, application.under_test.is_over, 2 in application.runs) == (2, True, False)


def test_who_waits_for_executors_says_so_and_ends_as_any_other(application: Application):
    lease = application.runs[1].lease
    del application.under_test._runs[1]
    assert application.under_test.may_wait(lease, "waits for executors: 0 of 2 are there")
    sign = read_sign(application.places)
    assert sign is not None
    assert (sign.phase, sign.waits_for) == ("starting", "waits for executors: 0 of 2 are there")
    assert place_order(application.places, "stop", "ann", application.now, "maintenance")
    assert not application.under_test.may_wait(lease, "")
    lease.give_back()


def test_a_graph_that_is_given_up_waits_for_no_executors(application: Application):
    application.flow.ask(Graph("second", conf={"spark.driver.memory": "650m"}))
    record = application.story.epochs[2].record
    second = accept_epoch(application.flow.places, record, Masking())
    waiting = StreamApplication(PlayedSpark(), second, lambda: application.now)  # type: ignore[arg-type]
    lease = EpochLease(second)
    assert waiting.may_wait(lease, "")
    application.now = record.at + second.manifest.settings.deploy_within_s + 1
    assert not waiting.may_wait(lease, "")
    assert application.story.epochs[2].aborted is not None
    lease.give_back()


@pytest.mark.parametrize(
    ("conf", "enough"),
    [
        ({"spark.master": "local[4]", "spark.executor.instances": "3"}, 0),
        ({"spark.master": "spark://h:7077", "spark.cores.max": "8", "spark.executor.cores": "2"}, 4),
        ({"spark.master": "spark://h:7077", "spark.cores.max": "20", "spark.executor.cores": "2"}, 8),
        ({"spark.master": "yarn", "spark.executor.instances": "1"}, 1),
        ({"spark.master": "spark://h:7077"}, 0),
    ],
)
def test_a_stream_begins_with_most_of_its_executors(conf: dict[str, str], enough: int):
    assert count_enough(conf) == enough


@pytest.mark.parametrize("is_ordered", [False, True])
def test_an_owner_that_ends_too_early_keeps_nobody_s_place(application: Application, is_ordered: bool):
    ask_in_turn(application)
    application.step(2, seconds=0.5)
    if is_ordered:
        application.under_test.step(is_ending=True)
    else:
        application.runs[1].is_over = True
    application.step(2, seconds=0.5)
    assert (application.under_test.is_over, list_held_now(application)) == (True, frozenset())


def test_in_a_program_that_ends_no_graph_begins(application: Application, monkeypatch: pytest.MonkeyPatch):
    """A graph that fails as its processes are ended is not started again beside those that still have a batch."""
    monkeypatch.setattr(application.runs[1], "halt", lambda now: None)
    application.flow.ask(Graph("second"))
    for _ in range(3):
        application.under_test.step(is_ending=True)
        application.now += 1
    assert list(application.runs) == [1]


def test_a_disk_that_is_away_for_a_while_ends_nothing(application: Application, monkeypatch: pytest.MonkeyPatch):
    """Neither for signs of life nor for the log; the sign says so as soon as it can."""
    away = OSError("Stale file handle")

    def fail(*arguments: object) -> None:
        raise away

    run, log = application.runs[1], application.under_test.executor.log
    with monkeypatch.context() as patch:
        patch.setattr(log, "read", fail)
        application.step(3)
        sign = read_sign(run.epoch.places)
        assert sign is not None
        assert "Stale file handle" in sign.waits_for
        patch.setattr(run, "make_sign", fail)
        patch.setattr(run, "look_once", fail)
        application.step(3)
        assert (run.looks, run.is_over) == (6, False)
    application.step()
    sign = read_sign(run.epoch.places)
    assert sign is not None
    assert (sign.at, sign.waits_for) == (application.now, "")


def test_a_log_that_stays_away_ends_the_program(application: Application, monkeypatch: pytest.MonkeyPatch):
    def fail() -> None:
        raise OSError("Stale file handle")

    monkeypatch.setattr(application.under_test.executor.log, "read", fail)
    application.step(30)
    with pytest.raises(OSError, match="Stale"):
        application.step(2)


def test_without_java_the_program_ends(application: Application):
    def fail() -> None:
        raise RuntimeError("Answer from Java side is empty")

    application.runs[1].look_once = fail
    with pytest.raises(RuntimeError):
        application.step()


def test_an_end_that_can_not_be_said_gives_the_lease_back(application: Application, monkeypatch: pytest.MonkeyPatch):
    run = application.runs[1]
    monkeypatch.setattr(run, "make_ended", lambda *arguments: run.epoch.places.exit.read_text())
    run.is_over = True
    application.step()
    assert application.under_test.is_over
    assert list_held(application.flow.places, {1: run.epoch.places}, application.now) == frozenset()


def test_rows_that_can_not_be_delivered_keep_the_old_graph_and_end_nothing(application: Application):
    """Forward only, but not over them: the switch waits with the reason, and goes on once it can."""
    tries: list[float] = []
    broken = [True]

    def finish(story: object) -> None:
        tries.append(application.now)
        if broken:
            raise ValueError("the shop says no: password=guess-it")

    run = application.runs[1]
    run.finish = finish
    finished = application.under_test.executor
    assert [do(FinishMoves(1)) for do in [finished._abilities[FinishMoves]] for _ in range(2)] == [False, False]
    assert len(tries) == 1, "not each second: the function is another system's door"
    application.step()
    sign = read_sign(run.epoch.places)
    assert sign is not None
    assert "epoch 1 can't be delivered: ValueError: the shop says no: password=***" in sign.waits_for
    broken.clear()
    application.step(3)
    assert finished._abilities[FinishMoves](FinishMoves(1))
    application.step()
    sign = read_sign(run.epoch.places)
    assert sign is not None
    assert sign.waits_for == ""


def test_a_function_that_does_not_come_back_holds_up_its_own_graph_alone(application: Application):
    comes_back, run = threading.Event(), application.runs[1]
    run.finish = lambda story: comes_back.wait()
    do = application.under_test.executor._abilities[FinishMoves]
    assert not do(FinishMoves(1))
    application.step(3)
    sign = read_sign(run.epoch.places)
    assert (run.looks, sign is not None and sign.waits_for) == (
        3,
        "rows recorded of epoch 1 are being delivered, for 30 s now",
    )
    comes_back.set()
    while not do(FinishMoves(1)):
        pass
    assert list(application.under_test._deliveries.tell()) == []


def test_a_batch_that_does_not_end_ends_the_program(application: Application):
    """It is run again: so nobody may be kept out by the leases, and how it was has to be known."""
    run = application.runs[1]
    run.failure, run.guilty, run.is_stuck = Failure("lost_driver", "its batch goes on"), QUERY, True
    with pytest.raises(Stuck, match=f"step '{QUERY}' of epoch 1"):
        application.step()
    application.under_test.close()
    ended = read_ended(run.epoch.places)
    assert (ended is not None and ended.code, ended is not None and ended.kind) == (3, "lost_driver")
    assert list_held(application.flow.places, {1: run.epoch.places}, application.now) == frozenset()


@pytest.fixture
def _nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer of drafts asks Spark as it is made."""
    monkeypatch.setattr(targets, "DraftWriter", lambda *arguments: None)


def leave_rows(application: Application) -> Path:
    """Epoch 1 has ended, its code is gone, and rows of it that are recorded were not delivered; their draft."""
    application.add(make_batch(1, 1, 0.0, 10.0, query=QUERY, files=("part",), x_tag="0000000a"))
    application.flow.ask(Graph("second"))
    application.step(2)
    application.add(make_started(2))
    application.runs[1].is_over = True
    application.step()
    old = application.places
    draft = make_local_path(place_aside(old, QUERY).name_folder(DraftName(1, QUERY, 1, "0000000a")))
    (draft / NEW).mkdir(parents=True)
    old.private.rename(old.folder / "gone")
    return draft


def test_rows_of_a_function_that_can_not_be_had_are_no_delivered_ones(application: Application):
    draft = leave_rows(application)
    assert not application.under_test._finish_moves(FinishMoves(1))
    assert draft.exists()


@pytest.mark.usefixtures("_nothing_is_written")
def test_rows_that_are_left_go_to_the_same_step_s_function_of_the_next_graph(application: Application):
    draft = leave_rows(application)
    run = application.runs[2]
    run.epoch = replace(run.epoch, manifest=replace(run.epoch.manifest, queries=(QuerySpec(QUERY, None, 2),)))
    while not application.under_test._finish_moves(FinishMoves(1)):
        pass
    assert not draft.exists()


@pytest.mark.usefixtures("_nothing_is_written")
def test_a_step_s_function_gets_no_other_step_s_rows(application: Application):
    draft = leave_rows(application)
    story, epoch = application.story, replace(application.runs[1].epoch)
    both = [open_target(PlayedSpark(), epoch, QuerySpec(step, None, 2), NO_WINDOWS) for step in ("other", QUERY)]  # type: ignore[arg-type]
    due = [[each.place.name_folder(name) for name in list_due(each.store, each.place, story)] for each in both]
    assert due == [[], [name_local(draft)]]


def test_a_start_says_which_run_follows_where_another_one_asked(application: Application):
    epoch, lease = application.runs[1].epoch, application.runs[1].lease
    run = EpochRun(PlayedSpark(), epoch, lease)  # type: ignore[arg-type]
    told = []
    for run_id in (epoch.record.run_id, "the next one"):
        write_follower(epoch.places, Follower(run_id, 0))
        told.append(run._describe_start(9, 0.0).x_run_id)
    assert told == ["", "the next one"]
