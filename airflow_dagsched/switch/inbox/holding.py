"""The hold of an inbox, and the fence that follows from the holds of all. Any process may make either."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_dagsched.switch.advising.boundary import choose_inbox_upto
from airflow_dagsched.switch.inbox.entries import Held
from airflow_dagsched.switch.inbox.inbox_story import InboxStory
from airflow_dagsched.switch.records import Fence
from airflow_dagsched.switch.story import EpochStory, Story
from airflow_dagsched.switch.windows import find_latest


def list_inboxes(epoch: EpochStory) -> tuple[str, ...]:
    """Sources of which the epoch has an inbox."""
    return tuple(sorted(epoch.record.x_sources)) if epoch.record.channel == "inbox" else ()


def make_held(inbox: InboxStory, epoch: int, n: int, at: float) -> Held | None:
    """The hold for a switch to the epoch; None: there is one, or one for a later switch."""
    if inbox.hold is not None and inbox.hold.epoch >= epoch:
        return None
    return Held(n=n, at=at, epoch=epoch, newest=inbox.newest)


def choose_fence(story: Story, inboxes: Mapping[str, InboxStory], n: int, at: float) -> Fence | None:
    """The fence to the successor, behind all that was routed before its holds; None: a hold is missing, or it has one.

    :param inboxes: by source.
    """
    old, new = story.old, story.new
    if old is None or new is None or new.into is not None or new.record.channel != "inbox":
        return None
    holds = [inboxes[name].hold if name in inboxes else None for name in list_inboxes(new)]
    made = [each for each in holds if each is not None and each.epoch == new.record.epoch]
    if not holds or len(made) < len(holds):
        return None
    upto = choose_inbox_upto(old, new, find_latest(each.newest for each in made))
    both = {"from_": old.record.epoch, "to": new.record.epoch}
    return Fence(n=n, at=at, **both, upto=upto.window, x_upto=upto.by_query)
