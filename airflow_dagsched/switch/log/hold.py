"""The hold of a flow's inboxes: files only, so any process does it, and stops nothing."""

from __future__ import annotations

from functools import partial

from airflow_dagsched.switch.inbox.entries import Entry
from airflow_dagsched.switch.inbox.holding import choose_fence, list_inboxes, make_held
from airflow_dagsched.switch.inbox.inbox_story import InboxStory
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.inbox_log import InboxLog
from airflow_dagsched.switch.places import FlowPlaces
from airflow_dagsched.switch.records import Record
from airflow_dagsched.switch.story import Story


def hold_inboxes(flow: FlowPlaces, log: FlowLog, epoch: int) -> None:
    """Let no row be routed any more by the rule before the switch to ``epoch``, then add its fence.

    Each line may be the last: whoever does it again finds what was done.
    """
    inboxes = {name: InboxLog(flow.name_inbox(name).log) for name in list_inboxes(log.story.epochs[epoch])}
    for inbox in inboxes.values():
        inbox.append(partial(_make_held, epoch))
    stories = {name: inbox.story for name, inbox in inboxes.items()}

    def make(story: Story, n: int, at: float) -> Record | None:
        return choose_fence(story, stories, n, at)

    log.append(make)


def _make_held(epoch: int, story: InboxStory, n: int, at: float) -> Entry | None:
    return make_held(story, epoch, n, at)
