"""One try of a stream's launch task: finds its epoch, or asks for one; sees that its queries run; then is deferred.

It may be the second try of a task whose worker died, a clear, or woken because a driver was lost: what there is to do
is in the log, and in what lies beside it.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_dagsched.errors import DagschedError, DoesNotFit, InvalidInput, LaunchRefused
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.streams.difference import explain_difference, needs_application
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.following.links import SparkUiLink
from airflow_dagsched.provider.runtime.ends import translate_refusal
from airflow_dagsched.provider.runtime.folders import list_bundle_roots
from airflow_dagsched.provider.runtime.gather_facts import gather_run_facts
from airflow_dagsched.provider.streaming.choose_epoch import (
    find_asked_code,
    find_epoch,
    find_unwanted,
    make_wanted,
)
from airflow_dagsched.provider.streaming.ending import ask_state, find_other, is_cleared_since, is_ended, order_end
from airflow_dagsched.provider.streaming.find_room import drop_dead_pins, open_inbox_room, open_room
from airflow_dagsched.provider.streaming.launching import Launching
from airflow_dagsched.provider.streaming.prepare_epoch import (
    render_stream,
    write_epoch,
    write_inbox_service,
)
from airflow_dagsched.provider.streaming.relocation.judge_move import Stay
from airflow_dagsched.provider.streaming.relocation.moving_run import (
    StaysPut,
    find_moving,
    judge_again,
    keeping_place,
)
from airflow_dagsched.provider.streaming.start_driver import locate_epoch, read_manifest
from airflow_dagsched.provider.streaming.trigger import StreamTrigger
from airflow_dagsched.provider.streaming.verdicts import End, judge_epoch
from airflow_dagsched.provider.submission.fresh_look import check_in_fresh_process
from airflow_dagsched.provider.submission.spark_home import check_spark
from airflow_dagsched.provider.submission.spark_submit import check_java
from airflow_dagsched.provider.submission.started_settings import make_missing_archive
from airflow_dagsched.switch.advising.advice import Answer
from airflow_dagsched.switch.advising.situation import can_stop, list_needed
from airflow_dagsched.switch.log.signs_files import (
    forget_refused,
    read_ended,
    read_orders,
    read_sign,
    write_follower,
    write_refused,
)
from airflow_dagsched.switch.log.standbys import send_away
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import Epoch
from airflow_dagsched.switch.say import tell_reason
from airflow_dagsched.switch.signs import Refused
from airflow_dagsched.switch.story import EpochStory, Story

log = logging.getLogger(__name__)

EPOCH_KEY = "epoch"
"""The XCom of a launch task that says which epoch it follows, while it does."""
FOR_INBOXES = " for what fills the inboxes, an application beside the graph's,"


def execute_stream(launching: Launching) -> Any:
    """Find or make the epoch, wait until its queries run, and be deferred; what the task returns, if it is over."""
    with translating_refusals():
        with noting_refusals(launching):
            while (epoch := adopt_epoch(launching) or request_epoch(launching)) is None:
                pass  # another run was faster
        forget_refused(launching.flow, launching.stream.fingerprint)
        return finish(epoch) if isinstance(epoch, End) else go_on(launching, epoch)


def resume_stream(launching: Launching, event: Mapping[str, Any]) -> Any:
    """See to what the trigger tells: start a driver again, or end."""
    if event["event"] == "ended":
        raise AirflowFailException(event["reason"])
    log.info("no driver worked for epoch %s: one is started from its checkpoints", event["epoch"])
    with translating_refusals():
        try:
            launching.executor.log.read()
            hook = PlannerHook(launching.task.spec.flow.conn_id, None)
            drop_dead_pins(launching.flow, launching.story, event["epoch"], hook)
            launching.step(event["follows"])
            return go_on(launching, event["follows"])
        except OSError as error:
            # A disk or a host that is short of something takes no retry: the start was counted, and comes again later.
            log.warning("epoch %s is not started now, but later: %s", event["epoch"], error)
            return wait_outside(launching, event["follows"])


@contextmanager
def translating_refusals() -> Iterator[None]:
    """What is refused inside becomes Airflow's exceptions."""
    try:
        yield
    except DagschedError as error:
        raise translate_refusal(error, Masking()) from None


@contextmanager
def noting_refusals(launching: Launching) -> Iterator[None]:
    """What another run of this code would find as well is kept, so that none is made for it."""
    try:
        yield
    except (InvalidInput, DoesNotFit, LaunchRefused) as error:
        told = translate_refusal(error, Masking())
        if isinstance(told, AirflowFailException):
            note_refusal(launching, launching.stream.fingerprint, str(told))
        raise


def note_refusal(launching: Launching, fingerprint: str, reason: str) -> None:
    """Keep it beside the log."""
    write_refused(launching.flow, Refused(fingerprint, launching.run_id, launching.clock(), reason))


# --- the epoch


def adopt_epoch(launching: Launching) -> int | End | None:
    """The epoch of this very code, which runs, or was started anew; None: there is none.

    An end where another run follows it: there is nothing to do.
    """
    executor, fingerprint = launching.executor, launching.stream.fingerprint
    executor.log.read()
    launching.standing = find_moving(launching)
    again = "again" in launching.wishes or launching.standing is not None
    unwanted = None if again else find_unwanted(launching.story, fingerprint)
    if unwanted is not None:
        _give_up(launching, unwanted)
    while (epoch := find_epoch(launching.story, fingerprint, launching.run_id, again=again)) is not None:
        if (end := _leave_to_other(launching, epoch)) is not None:
            return end
        if _is_ready(launching, epoch):
            log.info("epoch %s is of this code: this task follows it", epoch)
            return epoch
        # It is to stop after its batch, as a cleared task was to: then it is started again.
        launching.step(epoch)
        launching.pause()
    return None


def _leave_to_other(launching: Launching, epoch: int) -> End | None:
    """Nothing to do, if another run's task follows the epoch, or is about to."""
    ti = launching.context["ti"]
    other = find_other(launching.flow.name_epoch(launching.story.epochs[epoch].record.x_folder), launching.run_id)
    if not other or is_ended(ask_state(ti.dag_id, other, ti.task_id)):
        return None
    asked = find_asked_code(launching.context, launching.task.spec.flow.name)
    if asked and launching.stream.fingerprint not in asked:
        # It would ask again and again for what no worker can make.
        reason = tell_reason(Reason("unlike code", epoch, text=f"{launching.stream.fingerprint}, and not {asked[-1]}"))
        note_refusal(launching, asked[-1], reason)
        return End("failed", reason)
    reason = tell_reason(Reason("already followed", epoch, text=other))
    return End("success", reason, {"epoch": epoch, "followed_by": other, "reason": reason})


def _is_ready(launching: Launching, epoch: int) -> bool:
    """Whether the epoch can be followed; what has to run for it is started anew if it was stopped, and is gone."""
    found = launching.story.epochs[epoch]
    places = launching.flow.name_epoch(found.record.x_folder)
    if is_cleared_since(places, launching.follower):
        order_end(launching.flow, launching.executor.log, epoch, launching.run_id, launching.clock())
    needed = list_needed(launching.story)
    stopped = {each.record.epoch: each.stopped for each in needed if each.stopped is not None}
    if any(map(launching.is_held, stopped)) or any(_is_to_end(launching, each) for each in needed):
        return False
    write_follower(places, launching.follower)
    for number in stopped:
        launching.starter.resume(launching.story.epochs[number])
    launching.resumed |= stopped
    return True


def _is_to_end(launching: Launching, epoch: EpochStory) -> bool:
    orders = read_orders(launching.flow.name_epoch(epoch.record.x_folder))
    is_new = epoch.record.epoch == launching.story.successor
    return ("stop" in orders and can_stop(epoch)) or ("abort" in orders and is_new and epoch.into is None)


def _give_up(launching: Launching, epoch: int) -> None:
    """See to it that the epoch is given up for the code that runs, unless its fence comes first."""
    # No folder is made for it: the epoch of that code is there already.
    wanted = make_wanted(launching.stream, launching.task.spec.flow.graph, launching.run_id, "")
    while launching.story.successor == epoch and launching.story.epochs[epoch].into is None:
        launching.step(wanted=wanted)
        launching.pause()


def request_epoch(launching: Launching) -> int | None:
    """Make a new epoch's folder, ask for it, and wait until its queries run; the epoch. None: another run's is there.

    Raises :class:`LaunchRefused` where there is no room, or it is refused.
    """
    task, context = launching.task, launching.context
    spec, group = task.spec, task.spec.group.id
    hook = PlannerHook(spec.flow.conn_id, None)
    hook.check_connection(group)
    check_java(group)
    check_spark(group, task.spark_submit)
    check_in_fresh_process(spec.flow, task.dag.fileloc)
    facts = gather_run_facts(spec, context)
    rendered = render_stream(task, context, facts, list_bundle_roots(task.dag.fileloc, context))
    limit = launching.clock() + launching.stream.settings.deploy_within_s
    moves = launching.standing is not None

    def check(whose: str = "") -> None:
        check_patience(launching, limit, whose)

    with (
        keeping_place(launching),
        open_room(launching.look(), spec, hook, rendered, check, moves=moves) as allocation,
        open_inbox_room(launching.flow, spec, hook, rendered, partial(check, FOR_INBOXES)) as inbox,
    ):
        why = judge_again(launching, allocation.chosen) if moves else ""
        if inbox is not None:
            write_inbox_service(task, hook, rendered, inbox.chosen, launching.flow)
        places = write_epoch(task, hook, rendered, allocation.chosen, launching.flow)
        epoch = ask_for_epoch(launching, places, why)
        if epoch is None:
            return None
        record = launching.story.epochs[epoch].record
        write_follower(launching.flow.name_epoch(record.x_folder), launching.follower)
        log_change(launching, record)
        if wait_until_started(launching, epoch) is None:
            for each in filter(None, (allocation, inbox)):
                each.note_start()
        return epoch
    return None


def log_change(launching: Launching, record: Epoch) -> None:
    """Say what is other than in the epoch that it follows: whoever edits a file wants to know what came of it."""
    old, new = (read_manifest(launching.flow, launching.story, each) for each in (record.x_after, record.epoch))
    if old is not None and new is not None:
        changed = "; ".join(explain_difference(old, new)) or "nothing but what is outside of its code"
        reason = needs_application(old, new)
        log.info("epoch %s follows epoch %s, other are: %s", record.epoch, record.x_after, changed)
        log.info("it runs in %s", f"an application of its own: {reason}" if reason else "the same application")


def check_patience(launching: Launching, limit: float, whose: str = "") -> None:
    """While there is no room. Raises what ends the waiting."""
    if launching.task.stopped:
        raise AirflowException("this task was ended")
    send_away(launching.flow, launching.clock())
    if launching.standing is not None:
        raise StaysPut(Stay("no room"))
    if launching.clock() > limit:
        seconds = launching.stream.settings.deploy_within_s
        raise LaunchRefused(
            launching.task.spec.group.id,
            f"no room on the cluster{whose} within {seconds:g} s: what runs goes on",
            "free some, or make the stream smaller",
            passing=True,
        )


def ask_for_epoch(launching: Launching, places: EpochPlaces, why: str = "") -> int | None:
    """Ask until the epoch of this folder is in the log; None: one of the same code is.

    :param why: another one of the same code is wanted.
    Raises :class:`LaunchRefused`.
    """
    graph, wishes = launching.task.spec.flow.graph, launching.wishes
    wanted = make_wanted(launching.stream, graph, launching.run_id, places.folder.name, wishes, why)
    while True:
        advice = launching.step(wanted=wanted)
        mine = [n for n, each in launching.story.epochs.items() if each.record.x_folder == wanted.folder]
        if mine:
            return mine[0]
        answers = {each.kind: each.reason for each in advice.commands if isinstance(each, Answer)}
        if "tell" in answers or "refuse" in answers:
            shutil.rmtree(places.folder)
        if "tell" in answers:
            return None
        if "refuse" in answers:
            old = launching.story.old
            remedy = "what runs goes on" if old is None or old.stopped is None else "until then nothing runs"
            raise LaunchRefused(launching.task.spec.group.id, tell_reason(answers["refuse"]), remedy)
        os.utime(places.folder)  # it is still wanted: nobody is to clean it away
        launching.pause()


# --- its life


def wait_until_started(launching: Launching, epoch: int) -> End | None:
    """Return when the epoch's queries run, or will once nothing is in their way; or how it ended before."""
    while True:
        launching.step(epoch)
        resumed = _list_resumed(launching)
        ends = [_judge_resumed(launching, each) for each in resumed] or [judge_epoch(launching.story, epoch)]
        if (end := next(filter(None, ends), None)) is not None:
            return end
        found = launching.story.epochs.get(epoch)
        if not resumed and found is not None and found.started is not None and found.stopped is None:
            return None
        if not resumed and found is not None and _waits_for_old(launching.story, found):
            return None
        launching.pause()


def _list_resumed(launching: Launching) -> list[int]:
    """Epochs that were started again, and whose queries do not run yet."""
    found = {epoch: launching.story.epochs.get(epoch) for epoch in launching.resumed}
    return [epoch for epoch, each in found.items() if each and each.stopped == launching.resumed[epoch]]


def _waits_for_old(story: Story, epoch: EpochStory) -> bool:
    """Whether it is to start once the old graph is gone: that may take as long as rows take to come."""
    is_handed = epoch.into is not None and epoch.begun is None and story.successor == epoch.record.epoch
    return is_handed and epoch.comes_after


def _judge_resumed(launching: Launching, epoch: int) -> End | None:
    """How an epoch ended that was started again, and whose queries do not run yet; None: it still starts."""
    if launching.is_held(epoch):
        return None
    places = launching.flow.name_epoch(launching.story.epochs[epoch].record.x_folder)
    ended = read_ended(places)
    said = ended.message if ended is not None and ended.message else f"see {places.output}"
    return End("failed", f"epoch {epoch} was started again, and ended before its queries ran: {said}")


def go_on(launching: Launching, epoch: int) -> Any:
    """Follow the epoch, without a worker if that may be; what the task returns when it is over."""
    end = wait_until_started(launching, epoch)
    if end is None:
        show_epoch(launching, epoch)
        make_archive(launching, epoch)
    if end is None and not launching.stream.settings.hold_slot:
        return wait_outside(launching, epoch)
    while end is None:
        launching.step(epoch)
        end = judge_epoch(launching.story, epoch)
        launching.pause()
    return finish(end)


def wait_outside(launching: Launching, epoch: int) -> Any:
    """Follow the epoch without a worker, until there is something to do."""
    settings = launching.stream.settings
    limits = settings.deploy_within_s, settings.most_stuck_s, settings.catch_up_within_s
    trigger = StreamTrigger(str(launching.flow.folder), epoch, *limits)
    return launching.task.defer(trigger=trigger, method_name="resume")


def finish(end: End) -> Any:
    """End the task; what it returns. Raises ``AirflowFailException``."""
    if end.state == "failed":
        raise AirflowFailException(end.reason)
    log.info("%s", end.reason)
    return dict(end.returned)


def make_archive(launching: Launching, epoch: int) -> None:
    """Have the archive of classes made that its driver had to start without: a stream has no end to wait for."""
    places = locate_epoch(launching.flow, launching.story, epoch)
    with suppress(FileNotFoundError):  # it was started elsewhere, or is over and tidied up by now
        make_missing_archive(places.private)


def show_epoch(launching: Launching, epoch: int) -> None:
    """Say in the task's XComs which epoch it follows, and link Spark's own page of it, if its driver has said that."""
    ti, shown = launching.context["ti"], launching.story.epochs.get(epoch)
    if shown is None:
        return
    application = shown.started.application if shown.started is not None else None
    ti.xcom_push(EPOCH_KEY, {"epoch": epoch, "after": shown.record.x_after, "application": application})
    sign = read_sign(launching.flow.name_epoch(shown.record.x_folder))
    if sign is not None and sign.ui:
        launching.task.spark_ui = sign.ui
        ti.xcom_push(SparkUiLink().xcom_key, sign.ui)
