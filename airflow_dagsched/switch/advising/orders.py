"""Of which epochs an order is, and which order means nothing as things stand."""

from __future__ import annotations

from airflow_dagsched.switch.advising.boundary import find_watermark
from airflow_dagsched.switch.advising.situation import can_stop
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.signs import Order
from airflow_dagsched.switch.story import Story


def choose_ordered(story: Story, order: Order) -> tuple[int, ...] | Reason:
    """The epochs that the order is placed with, or why it is refused."""
    return _choose_stopped(story) if order == "stop" else _choose_switched(story, order)


def _choose_stopped(story: Story) -> tuple[int, ...] | Reason:
    # Of both graphs of a switch: an order counts until its own epoch is stopped, and one stops before the other.
    living = [each for each in (story.old, story.new) if each is not None and can_stop(each)]
    return tuple(each.record.epoch for each in living) or Reason("nothing runs")


def _choose_switched(story: Story, order: Order) -> tuple[int, ...] | Reason:
    new = story.new
    if new is None:
        return Reason("no switch")
    if new.into is not None:
        return Reason("only forward", story.owner or 0)
    if order == "confirm" and new.record.x_confirm == "auto":
        return Reason("needs no word", new.record.epoch)
    if order == "confirm" and find_watermark(new) is None:
        return Reason("nothing to confirm", new.record.epoch, names=new.without_batch)
    return (new.record.epoch,)
