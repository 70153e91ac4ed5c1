"""What can be said of a flow at one look: the log, what is seen beside it, and what is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from airflow_dagsched.switch.advising.advice import Limits, Wanted
from airflow_dagsched.switch.advising.boundary import find_watermark
from airflow_dagsched.switch.places import INBOX_SERVICE, STANDBY
from airflow_dagsched.switch.record_rules import has_passed
from airflow_dagsched.switch.records import Batch
from airflow_dagsched.switch.signs import HEAD_START_S, Ended, Order, Seen, Starts, find_next_start, is_alive
from airflow_dagsched.switch.state import State, find_state
from airflow_dagsched.switch.story import EpochStory, Story


@dataclass(frozen=True)
class Situation:
    """One look; nothing in it changes."""

    story: Story
    seen: Seen
    wanted: Wanted | None
    limits: Limits

    @cached_property
    def state(self) -> State:
        """The state of the flow."""
        return find_state(self.story, self.seen.held)

    @property
    def old(self) -> EpochStory | None:
        """The owner."""
        return self.story.old

    @property
    def new(self) -> EpochStory | None:
        """Its successor."""
        return self.story.new

    # --- of one epoch

    def is_held(self, epoch: EpochStory) -> bool:
        """Whether a driver works for it."""
        return epoch.record.epoch in self.seen.held

    def find_ended(self, epoch: EpochStory) -> Ended | None:
        """How its last driver ended; None: one works for it, or that is not known."""
        return None if self.is_held(epoch) else self.seen.ended.get(epoch.record.epoch)

    def count_tries(self, epoch: EpochStory) -> int:
        """Starts after each other without a batch."""
        starts = self.seen.starts.get(epoch.record.epoch)
        last = find_last_batch(epoch)
        # Who starts it again puts the count to nothing; until then it is of before the batch.
        return 0 if starts is None or (last is not None and last.at > starts.at) else starts.count

    def is_ordered(self, epoch: EpochStory, order: Order) -> bool:
        """Whether someone ordered that of it, and it is still to be done."""
        # The file of a stop stays until the epoch is started again; it says nothing of what is asked for after it.
        is_done = order == "stop" and not can_stop(epoch)
        return not is_done and order in self.seen.orders.get(epoch.record.epoch, {})

    def is_lost(self, epoch: EpochStory) -> bool:
        """Whether it ran, should still, and no driver works for it."""
        return epoch.begun is not None and self.is_down(epoch)

    def is_down(self, epoch: EpochStory) -> bool:
        """Whether no driver works for it, and nobody said that none should."""
        return epoch.stopped is None and not self.is_held(epoch)

    def owes_commit(self, epoch: EpochStory) -> bool:
        """Whether a batch of it is recorded that Spark has not committed: the state behind it is not to be had yet."""
        done = self.seen.committed.get(epoch.record.epoch, {})
        return any(query.last.batch > done.get(name, -1) for name, query in epoch.queries.items())

    # --- events, each of which may be seen late, twice, or not at all

    def is_stop_ordered(self) -> bool:
        """Someone wants that nothing of the flow runs."""
        return any(each is not None and self.is_ordered(each, "stop") for each in (self.old, self.new))

    def is_abort_ordered(self) -> bool:
        """Someone wants no switch."""
        return self.new is not None and self.is_ordered(self.new, "abort")

    def has_new_failed(self) -> bool:
        """The new graph fails before its first batch, or was started in vain too often."""
        new = self.new
        if new is None or self.is_held(new):
            return False
        ended = self.find_ended(new)
        is_authors = ended is not None and ended.kind == "author" and not new.queries
        return is_authors or self.count_tries(new) >= self.limits.tries

    def does_old_crash(self) -> bool:
        """The owner was started in vain too often."""
        old = self.old
        return old is not None and self.is_down(old) and self.count_tries(old) >= self.limits.crashes

    def is_old_lost(self) -> bool:
        """No driver works for the owner, and one should."""
        return self.old is not None and (self.is_lost(self.old) or self._lacks_commit(self.old))

    def _lacks_commit(self, old: EpochStory) -> bool:
        """Whether nobody would commit the state that it hands on, as it was stopped just before that."""
        is_handed = self.new is not None and self.new.into is not None and self.new.record.channel == "carry"
        return is_handed and not self.is_held(old) and self.owes_commit(old)

    def is_new_lost(self) -> bool:
        """No driver works for the successor, which was started, and should."""
        return self.new is not None and self.is_lost(self.new)

    def is_due(self) -> bool:
        """Something was asked for and nobody has begun it."""
        waiting = self.new or self.old
        return waiting is not None and waiting.begun is None and not waiting.stopped and not self.is_held(waiting)

    def is_caught_up(self) -> bool:
        """The new graph runs, and is as far as the old one."""
        # There is no way back behind the fence: a graph that is lost just now may never come again.
        if self.old is None or self.new is None or self.new.started is None or not self.is_held(self.new):
            return False
        if self.new.record.channel == "inbox":
            return True
        mine, others = find_watermark(self.new), find_watermark(self.old)
        return mine is not None and (others is None or mine >= others)

    def is_confirmed(self) -> bool:
        """Nobody need say that the new graph may take over, or someone did."""
        new = self.new
        return new is not None and (new.record.x_confirm == "auto" or self.is_ordered(new, "confirm"))

    def has_timed_out(self) -> bool:
        """The new graph takes too long to start, or to its next batch."""
        new = self.new
        if new is None:
            return False
        if new.started is None:
            return self.seen.now - new.record.at > self.limits.deploy_s
        return (self._is_stuck(new) or self.is_hopeless()) and not self._may_take_long(new)

    def _is_stuck(self, new: EpochStory) -> bool:
        last = find_last_batch(new)
        since = max(each.at for each in (new.started, last) if each is not None)
        return self.seen.now - since > self.limits.stuck_s

    def is_hopeless(self) -> bool:
        """The new graph has worked for so long, and is behind the old one, that it may never be as far."""
        sign = self.seen.signs.get(self.new.record.epoch) if self.new is not None else None
        if self.new is None or sign is None or self.is_caught_up():
            return False
        # Batches, not hours: without rows there are none, and then nobody can catch up.
        batches = max((each.last.batch + 1 for each in self.new.queries.values()), default=0)
        return batches * sign.trigger_s > self.limits.catch_up_s

    def _may_take_long(self, new: EpochStory) -> bool:
        """Whether there are no rows, or it waits for a person."""
        sign = self.seen.signs.get(new.record.epoch)
        is_idle = sign is not None and sign.phase == "idle"
        return is_idle or (self.is_caught_up() and not self.is_confirmed())

    def has_old_passed(self) -> bool:
        """The old graph has emitted all that is its own."""
        old, new = self.old, self.new
        if old is None or new is None or old.out is None:
            return False
        if new.record.x_overlap == "cold":
            # It runs no more: the new graph's driver, which is there to stay, ends what it left.
            return old.stopped is not None and self.is_held(new)
        if new.record.channel == "carry":
            return not self.is_held(old) and not self.owes_commit(old)
        return has_passed(old)

    def is_old_held(self) -> bool:
        """A driver works for the owner."""
        return self.old is not None and self.is_held(self.old)

    def is_old_gone(self) -> bool:
        """No driver works for the owner, or there is none."""
        return not self.is_old_held()

    def is_aborted_held(self) -> bool:
        """A driver works for an epoch that was given up."""
        newest = self.story.newest
        return newest is not None and newest.aborted is not None and self.is_held(newest)

    def is_new_ready(self) -> bool:
        """The successor's graph is made, and waits for the state that the owner hands on."""
        new = self.new
        if new is None or new.record.channel != "carry" or not self.is_held(new):
            return False
        sign = self.seen.signs.get(new.record.epoch)
        return sign is not None and sign.phase == "ready" and is_alive(sign, self.seen.now)

    def is_inbox_lost(self) -> bool:
        """Nobody routes rows into the inbox, which a graph reads."""
        return self.story.reads_inbox and INBOX_SERVICE not in self.seen.held

    def is_standby_lost(self) -> bool:
        """The owner runs, and the application that is to wait for its end does not."""
        old = self.old
        wants = old is not None and old.record.x_standbys > 0 and old.stopped is None and self.is_held(old)
        return wants and STANDBY not in self.seen.held

    def find_start(self, epoch: EpochStory) -> float:
        """When whoever follows the epoch may start it, in seconds since 1970."""
        number = epoch.record.epoch
        return max(find_next_start(self.seen.starts.get(number), self.seen.now), self._find_head_start(number))

    def _find_head_start(self, number: int) -> float:
        """Until when the epoch is a standby's to take over; 0: there is none, or an application goes on."""
        standby, last = self.seen.signs.get(STANDBY), self.seen.signs.get(number)
        is_up = STANDBY in self.seen.held and standby is not None and standby.phase == "standby"
        if last is None or not is_up or not is_alive(standby, self.seen.now) or self.seen.held & {*self.story.epochs}:
            return 0.0
        return last.at + HEAD_START_S

    def is_asked(self) -> bool:
        """An epoch is asked for that is not in the log yet."""
        wanted = self.wanted
        return wanted is not None and all(each.record.x_folder != wanted.folder for each in self.story.epochs.values())


def can_stop(epoch: EpochStory) -> bool:
    """Whether an order to stop is still to be done. A graph that begins when the old one has ended its windows has
    nothing to end before.
    """
    record = epoch.record
    is_alone = record.x_overlap == "sequential" and record.channel != "carry"
    is_waiting = is_alone and epoch.into is not None and epoch.begun is None and not epoch.current
    return epoch.stopped is None and not is_waiting


def list_needed(story: Story) -> tuple[EpochStory, ...]:
    """The graphs that must run for the flow to come to its end: behind a fence both, the owner first."""
    old, new = story.old, story.new
    if new is None or new.into is None:
        return tuple(each for each in (new or old,) if each is not None)
    # After a cold switch the old graph can run no more: the new one's driver finishes what it left.
    is_old_done = old is None or old.drained or new.record.x_overlap == "cold"
    return (new,) if old is None or is_old_done else (old, new)


def find_last_batch(epoch: EpochStory) -> Batch | None:
    """The batch that was recorded last, of any query."""
    return max((query.last for query in epoch.queries.values()), key=lambda each: each.n, default=None)


def count_start(epoch: EpochStory, before: Starts | None, now: float) -> Starts:
    """The starts after each other without a batch, with one more at ``now``."""
    last = find_last_batch(epoch)
    is_first = before is None or (last is not None and last.at > before.at)
    return Starts(1 if is_first or before is None else before.count + 1, now)
