"""What is done at an event: commands, none of which needs to be known to have been done before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from airflow_dagsched.switch.advising.advice import (
    Answer,
    Append,
    Command,
    Deploy,
    FinishMoves,
    Halt,
    Hold,
    Wanted,
)
from airflow_dagsched.switch.advising.boundary import (
    Begin,
    choose_begin,
    choose_cold_begin,
    choose_upto,
    find_changed_sources,
    find_newest,
    find_unlike_windows,
    list_open,
    put_named,
)
from airflow_dagsched.switch.advising.situation import Situation, can_stop, list_needed
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import Aborted, Cause, Current, Drained, Epoch, Fence, Stopped
from airflow_dagsched.switch.say import tell_reason
from airflow_dagsched.switch.signs import Order
from airflow_dagsched.switch.story import EpochStory

Action = Callable[[Situation], tuple[Command, ...]]


def _number(look: Situation) -> dict[str, Any]:
    """Number and time of the next record."""
    return {"n": look.story.last + 1, "at": look.seen.now}


# --- ends


def _stop(look: Situation, epoch: EpochStory, reason: Reason, cause: Cause) -> tuple[Command, ...]:
    """Halt it, and once no driver works for it say so; nothing to do if that was said."""
    if epoch.stopped is not None:
        return ()
    if look.is_held(epoch):
        return (Halt(epoch.record.epoch),)
    number = epoch.record.epoch
    return (Append(Stopped(**_number(look), epoch=number, reason=tell_reason(reason), x_cause=cause)),)


def abort(look: Situation, reason: Reason, cause: Cause) -> tuple[Command, ...]:
    """Give the switch up."""
    if look.new is None:
        return ()
    number = look.new.record.epoch
    return (Append(Aborted(**_number(look), epoch=number, reason=tell_reason(reason), x_cause=cause)),)


def _get_order(look: Situation, order: Order) -> Reason:
    ordered = [each for each in (look.old, look.new) if each is not None and look.is_ordered(each, order)]
    texts = [look.seen.orders[each.record.epoch][order] for each in ordered]
    return Reason("ordered", text=next(filter(None, texts), ""))


def stop_old(look: Situation) -> tuple[Command, ...]:
    """End the owner, as was ordered."""
    return _stop(look, look.old, _get_order(look, "stop"), "person") if look.old else ()


def stop_both(look: Situation) -> tuple[Command, ...]:
    """End both graphs, as was ordered; whoever starts them again goes on with the switch."""
    both = [each for each in (look.old, look.new) if each is not None and can_stop(each)]
    return tuple(command for each in both for command in _stop(look, each, _get_order(look, "stop"), "person"))


def abort_to_stop(look: Situation) -> tuple[Command, ...]:
    """Give the switch up, as nothing is to run."""
    return abort(look, _get_order(look, "stop"), "person")


def abort_ordered(look: Situation) -> tuple[Command, ...]:
    """Give the switch up, as was ordered."""
    return abort(look, _get_order(look, "abort"), "person")


def refuse_abort(look: Situation) -> tuple[Command, ...]:
    """There is no way back behind a fence."""
    return (Answer("refuse", Reason("only forward", look.story.owner or 0)),)


def give_up(look: Situation) -> tuple[Command, ...]:
    """The new graph fails: the old one has not noticed."""
    return abort(look, *_explain_end(look, look.new)) if look.new else ()


def abort_with_old(look: Situation) -> tuple[Command, ...]:
    """Without the old graph the new one has nobody to take over from in this way."""
    return abort(look, Reason("old fails", look.story.owner or 0), "lost")


def stop_crashing(look: Situation) -> tuple[Command, ...]:
    """Start the owner no more: it never comes to a batch."""
    old = look.old
    return _stop(look, old, *_explain_end(look, old)) if old else ()


def _explain_end(look: Situation, epoch: EpochStory) -> tuple[Reason, Cause]:
    ended = look.find_ended(epoch)
    if ended is not None and ended.kind == "author":
        return Reason("fails", names=(ended.step,) if ended.step else (), text=ended.message), "author"
    if ended is not None and ended.message:
        return Reason("comes to nothing", text=ended.message), "lost"
    return Reason("comes to nothing silently", text=epoch.record.x_folder), "lost"


def time_out(look: Situation) -> tuple[Command, ...]:
    """The new graph takes too long."""
    if look.new is not None and look.new.started is None:
        return abort(look, Reason("no executors", seconds=look.limits.deploy_s), "time")
    if look.is_hopeless():
        return abort(look, Reason("never catches up", seconds=look.limits.catch_up_s), "time")
    return abort(look, Reason("no progress", seconds=look.limits.stuck_s), "time")


# --- starts


def deploy(look: Situation, epoch: EpochStory) -> tuple[Command, ...]:
    """Start it, no sooner than its last starts allow, and a standby leaves it."""
    return (Deploy(epoch.record.epoch, look.find_start(epoch)),)


def restart_old(look: Situation) -> tuple[Command, ...]:
    """Start the owner again."""
    return deploy(look, look.old) if look.old else ()


def restart_new(look: Situation) -> tuple[Command, ...]:
    """Start the successor again."""
    return deploy(look, look.new) if look.new else ()


def keep_trying(look: Situation) -> tuple[Command, ...]:
    """The old graph must emit what is before the fence, and fails: nobody else may."""
    old = look.old
    if old is None:
        return ()
    reason, _ = _explain_end(look, old)
    return (Answer("wait", Reason("old must emit", old.record.epoch, old.upto, text=tell_reason(reason))),)


def begin_switch(look: Situation) -> tuple[Command, ...]:
    """Deploy the new graph beside the old one; where only one can run, the fence comes first."""
    old, new = look.old, look.new
    if old is None or new is None:
        return restart_new(look)
    if new.record.channel == "carry":
        # Its steps are called, and compared, before there is no way back.
        return restart_new(look)
    if new.record.x_overlap == "cold" and old.stopped is None:
        return abort(look, Reason("old runs again", old.record.epoch), "replaced")
    return restart_new(look) if new.record.x_overlap == "beside" else fence(look)


# --- the hand-over


def take_over(look: Situation) -> tuple[Command, ...]:
    """The fence, or what it needs."""
    new = look.new
    if new is not None and new.record.channel == "inbox":
        return (Hold(new.record.epoch),) if look.is_confirmed() else _wait_for_confirm(new)
    return fence(look) if look.is_confirmed() else _wait_for_confirm(new)


def _wait_for_confirm(new: EpochStory | None) -> tuple[Command, ...]:
    return (Answer("wait", Reason("waits for confirm", new.record.epoch)),) if new else ()


def fence(look: Situation) -> tuple[Command, ...]:
    """From here on there is no way back."""
    old, new = look.old, look.new
    if old is None or new is None:
        return ()
    upto = choose_upto(old, new)
    both = {"from_": old.record.epoch, "to": new.record.epoch}
    return (Append(Fence(**_number(look), **both, upto=upto.window, x_upto=upto.by_query)),)


def drain(look: Situation) -> tuple[Command, ...]:
    """The old graph has emitted all that is its own. What is left aside of it only a driver can deliver: without one
    nothing is done here, and drivers are started again as at any other time.
    """
    old, new = look.old, look.new
    if old is None or new is None or not (look.is_held(old) or look.is_held(new)):
        return ()
    return FinishMoves(old.record.epoch), Append(Drained(**_number(look), epoch=old.record.epoch))


def halt_old(look: Situation) -> tuple[Command, ...]:
    """End the old graph: nothing is its own any more."""
    return (Halt(look.story.owner or 0),)


def halt_aborted(look: Situation) -> tuple[Command, ...]:
    """End the graph that was given up."""
    newest = look.story.newest
    return (Halt(newest.record.epoch),) if newest is not None else ()


def retire(look: Situation) -> tuple[Command, ...]:
    """The old graph is gone: say so, then who is the owner now."""
    old, new = look.old, look.new
    if new is None:
        return ()
    if old is not None and old.stopped is None:
        return _stop(look, old, Reason("replaced", new.record.epoch, old.upto), "replaced")
    return (Append(Current(**_number(look), epoch=new.record.epoch)),)


# --- what is asked for


def ask(look: Situation) -> tuple[Command, ...]:
    """A new epoch, unless there is one of the same code."""
    wanted, old = look.wanted, look.old
    if wanted is None:
        return ()
    if old is None:
        return _request(look, wanted, Begin(wanted.start), "beside")
    if old.record.fingerprint == wanted.fingerprint and not wanted.again:
        return _resume(look, old)
    is_cold = old.stopped is not None and wanted.channel != "carry"
    unlike = find_unlike_windows(old, wanted.window, goes_on=not is_cold and wanted.channel != "carry")
    if unlike is not None:
        return (Answer("refuse", unlike),)
    changed = _find_changed(wanted, old)
    if changed is not None:
        return (Answer("refuse", changed),)
    if is_cold:
        return _ask_cold(look, wanted, old)
    ended = look.find_ended(old)
    if look.is_down(old) and ended is not None and ended.kind == "author":
        return stop_crashing(look)
    return _ask_running(look, wanted, old)


def _find_changed(wanted: Wanted, old: EpochStory) -> Reason | None:
    """Why sources can't be read as is wanted."""
    changed = find_changed_sources(old, wanted.sources)
    if wanted.channel == old.record.channel == "inbox":
        # What routes goes on as it was begun.
        other = sorted({*changed, *({*wanted.sources} ^ {*old.record.x_sources})})
        return Reason("inbox sources", old.record.epoch, names=tuple(other)) if other else None
    if wanted.channel == "carry":
        # It goes on with the very next row: no other place fits what is in the state.
        named = {name for name, offset in (wanted.start or {}).items() if old.record.x_named.get(name) != offset}
        moved = tuple(sorted({*changed, *named}))
        return Reason("carried source", old.record.epoch, names=moved) if moved else None
    moved = tuple(each for each in changed if each not in (wanted.start or {}))
    return Reason("source changed", old.record.epoch, names=moved) if moved else None


def _resume(look: Situation, old: EpochStory) -> tuple[Command, ...]:
    told = Answer("tell", Reason("already runs", old.record.epoch, text=old.record.run_id))
    return (told,) if look.is_held(old) else (*deploy(look, old), told)


def _ask_cold(look: Situation, wanted: Wanted, old: EpochStory) -> tuple[Command, ...]:
    names = list_open(old)
    if names and not wanted.open_windows:
        return (Answer("refuse", Reason("windows stay open", old.record.epoch, old.newest_window, names)),)
    begin = choose_cold_begin(old, wanted.reads, wanted.window, wanted.reach)
    if old.record.channel == "inbox":
        # Places in the lists of files of inboxes: of no use in the source, and an inbox is listed as a whole.
        begin = replace(begin, start=None)
    return _request(look, wanted, _heed_named(wanted, old, begin), "cold")


def _ask_running(look: Situation, wanted: Wanted, old: EpochStory) -> tuple[Command, ...]:
    if (wanted.channel == "inbox") != (old.record.channel == "inbox"):
        return (Answer("refuse", Reason("other way of rows", old.record.epoch)),)
    if wanted.channel == "carry":
        # Where the old graph ends is in its checkpoint, once it has.
        return _request(look, wanted, Begin(), "beside")
    if wanted.channel != "replay":
        return _request(look, wanted, Begin(wanted.start), "beside")
    if not old.queries:
        return (Answer("wait", Reason("owner has no batch", old.record.epoch)),)
    begin = choose_begin(old, wanted.reads, wanted.window, wanted.reach)
    if isinstance(begin, Reason):
        return (Answer("wait", begin),)
    latest = look.seen.now + wanted.max_ahead + wanted.window
    # Not the boundary: where windows slide it is later than any row.
    if begin.rows_from is not None and begin.rows_from > latest:
        source, newest = find_newest(old) or ("", begin.rows_from)
        return (Answer("refuse", Reason("ahead of the clock", window=newest, names=(source,))),)
    return _request(look, wanted, _heed_named(wanted, old, begin), wanted.overlap)


def _heed_named(wanted: Wanted, old: EpochStory, begin: Begin) -> Begin:
    # Offsets that the author names are of before: what they have too much is dropped as it is read.
    return put_named(begin, wanted.start or {}, old, find_changed_sources(old, wanted.sources))


def _request(look: Situation, wanted: Wanted, begin: Begin, overlap: Any) -> tuple[Command, ...]:
    newest = look.story.newest
    record = Epoch(
        **_number(look),
        epoch=(newest.record.epoch if newest else 0) + 1,
        fingerprint=wanted.fingerprint,
        run_id=wanted.run_id,
        channel=wanted.channel,
        start=begin.start,
        boundary=begin.boundary,
        x_folder=wanted.folder,
        x_after=look.story.owner or 0,
        x_queries=tuple(wanted.reads),
        x_window=wanted.window,
        x_reach=wanted.reach,
        x_rows_from=begin.rows_from,
        x_drain=wanted.drain,
        x_overlap=overlap,
        x_confirm=wanted.confirm,
        x_order=wanted.order,
        x_standbys=wanted.standbys,
        x_sources=wanted.sources,
        x_named=wanted.start or {},
        x_read=begin.read,
        x_why=wanted.why,
    )
    return (Append(record),)


def ask_instead(look: Situation) -> tuple[Command, ...]:
    """In place of a switch that has no fence yet, if it is to other code."""
    wanted, new = look.wanted, look.new
    if wanted is None or new is None:
        return ()
    if new.record.fingerprint == wanted.fingerprint and not wanted.again:
        return (Answer("tell", Reason("already asked for", new.record.epoch, text=new.record.run_id)),)
    return abort(look, Reason("replaced by a request", text=wanted.run_id), "replaced")


def ask_later(look: Situation) -> tuple[Command, ...]:
    """Behind a fence the switch ends first; what of it was stopped goes on."""
    stopped = [each for each in list_needed(look.story) if each.stopped and not look.is_held(each)]
    again = tuple(command for each in stopped for command in deploy(look, each))
    return *again, Answer("wait", Reason("switch ends first", look.story.successor or 0))


def _do_nothing(look: Situation) -> tuple[Command, ...]:
    return ()


ACTIONS: Mapping[str, Action] = {
    ".": _do_nothing,
    **{
        action.__name__: action
        for action in (
            *(stop_old, stop_both, abort_to_stop, abort_ordered, refuse_abort, give_up, abort_with_old),
            *(stop_crashing, time_out, restart_old, restart_new, keep_trying, begin_switch, take_over, fence),
            *(drain, halt_old, halt_aborted, retire, ask, ask_instead, ask_later),
        )
    },
}
"""By the names that the table has them under."""
