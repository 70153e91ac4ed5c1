"""What is done where state is handed on, or rows come by the inbox."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_dagsched.switch.advising.actions import Action, abort, fence, halt_old, restart_new
from airflow_dagsched.switch.advising.advice import Answer, Command, Deploy
from airflow_dagsched.switch.advising.boundary import list_open
from airflow_dagsched.switch.advising.situation import Situation
from airflow_dagsched.switch.places import INBOX_SERVICE
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.signs import find_next_start


def hand_over_state(look: Situation) -> tuple[Command, ...]:
    """The fence, once all queries of the old graph have a batch; it is no successor's if it emits rows of windows that
    may get more.
    """
    old = look.old
    if old is None:
        return ()
    if not old.queries or old.without_batch:
        return (Answer("wait", Reason("owner has no batch", old.record.epoch)),)
    names = list_open(old)
    if names:
        # Its newest window is always ahead of its watermark: waiting would change nothing.
        return abort(look, Reason("windows are open", old.record.epoch, names=names), "author")
    return fence(look)


def halt_handed(look: Situation) -> tuple[Command, ...]:
    """End the old graph where its state is the new one's, and all of it on disk: no batch of it counts any more."""
    old, new = look.old, look.new
    if old is None or new is None or new.record.channel != "carry" or look.owes_commit(old):
        return ()
    return halt_old(look)


def begin_behind(look: Situation) -> tuple[Command, ...]:
    """Deploy the new graph behind its fence, where the old one runs no more, or hands its state on."""
    new = look.new
    is_behind = new is not None and (new.record.x_overlap == "cold" or new.record.channel == "carry")
    return restart_new(look) if is_behind else ()


def deploy_inbox(look: Situation) -> tuple[Command, ...]:
    """Start what routes rows into the inbox."""
    return (Deploy(INBOX_SERVICE, find_next_start(look.seen.starts.get(INBOX_SERVICE), look.seen.now)),)


CHANNEL_ACTIONS: Mapping[str, Action] = {
    action.__name__: action for action in (hand_over_state, halt_handed, begin_behind, deploy_inbox)
}
"""By the names that the table has them under."""
