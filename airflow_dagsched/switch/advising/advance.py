"""What is to be done at each event in each state: a table, every pair in it, and its reading.

Events are looked for in the order of the table; the first one that asks for a record is the last: its record changes
the story, and with it all that comes after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from airflow_dagsched.switch.advising.actions import ACTIONS, Action
from airflow_dagsched.switch.advising.advice import Advice, Answer, Append, Command, Limits, Wanted
from airflow_dagsched.switch.advising.boundary import find_watermark
from airflow_dagsched.switch.advising.channel_actions import CHANNEL_ACTIONS
from airflow_dagsched.switch.advising.situation import Situation
from airflow_dagsched.switch.advising.standby import STANDBY_ACTIONS
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.signs import Seen
from airflow_dagsched.switch.state import STATES, State
from airflow_dagsched.switch.story import EpochStory, Story

LIMITS = Limits()
NAMED: Mapping[str, Action] = {**ACTIONS, **CHANNEL_ACTIONS, **STANDBY_ACTIONS}
EVENTS: Mapping[str, Callable[[Situation], bool]] = {
    "stop ordered": Situation.is_stop_ordered,
    "abort ordered": Situation.is_abort_ordered,
    "new failed": Situation.has_new_failed,
    "old crashes": Situation.does_old_crash,
    "timed out": Situation.has_timed_out,
    "passed": Situation.has_old_passed,
    "old held": Situation.is_old_held,
    "old gone": Situation.is_old_gone,
    "held in vain": Situation.is_aborted_held,
    "asked": Situation.is_asked,
    "old lost": Situation.is_old_lost,
    "new lost": Situation.is_new_lost,
    "new ready": Situation.is_new_ready,
    "due": Situation.is_due,
    "caught up": Situation.is_caught_up,
    "inbox lost": Situation.is_inbox_lost,
    "standby lost": Situation.is_standby_lost,
}
"""Event -> whether it is seen."""
LAST = "stop ordered"
"""Who wants nothing to run wants nothing else."""
ROWS = """
               steady         requested       deploying       catching_up     fenced        retiring      aborted
stop ordered   stop_old       abort_to_stop   abort_to_stop   abort_to_stop   stop_both     stop_both     stop_old
abort ordered  .              abort_ordered   abort_ordered   abort_ordered   refuse_abort  refuse_abort  .
new failed     .              give_up         give_up         give_up         .             .             .
old crashes    stop_crashing  abort_with_old  abort_with_old  abort_with_old  keep_trying   .             stop_crashing
timed out      .              time_out        time_out        time_out        .             .             .
passed         .              .               .               .               drain         .             .
old held       .              .               .               .               halt_handed   halt_old      .
old gone       .              .               .               .               .             retire        .
held in vain   .              .               .               .               .             .             halt_aborted
asked          ask            ask_instead     ask_instead     ask_instead     ask_later     ask_later     ask
old lost       restart_old    restart_old     restart_old     restart_old     restart_old   .             restart_old
new lost       .              .               .               restart_new     restart_new   restart_new   .
new ready      .              .               hand_over_state .               .             .             .
due            restart_old    begin_switch    .               .               begin_behind  .             restart_old
caught up      .              .               .               take_over       .             .             .
inbox lost     deploy_inbox   deploy_inbox    deploy_inbox    deploy_inbox    deploy_inbox  deploy_inbox  deploy_inbox
standby lost   deploy_standby .               .               deploy_standby  .             .             .
"""
"""Of "." nothing comes: the event means nothing there, however late or often it is seen."""


def read_rows(text: str) -> dict[tuple[State, str], Action]:
    """The table that ``text`` shows."""
    table: dict[tuple[State, str], Action] = {}
    header, *lines = text.strip().splitlines()
    for line in lines:
        event = next(each for each in EVENTS if line.startswith(f"{each} "))
        cells = dict(zip(header.split(), line.removeprefix(event).split(), strict=True))
        table.update({(state, event): NAMED[cells[state]] for state in STATES})
    return table


OBSERVED = read_rows(ROWS)


def advance(story: Story, seen: Seen, wanted: Wanted | None = None, limits: Limits = LIMITS) -> Advice:
    """What is to be done now, and what is waited for.

    :param wanted: epoch that the caller asks for; it may ask again and again until it is in the story.
    """
    look = Situation(story, seen, wanted, limits)
    if look.state in seen.paused:
        return Advice(look.state, (), (Reason("paused", text=look.state),))
    commands = tuple(_list_commands(look))
    waits = [each.reason for each in commands if isinstance(each, Answer) and each.kind == "wait"]
    return Advice(look.state, commands, (*waits, *_list_waits(look)))


def _list_commands(look: Situation) -> Iterator[Command]:
    for event, is_seen in EVENTS.items():
        commands = OBSERVED[look.state, event](look) if is_seen(look) else ()
        for command in commands:
            yield command
            if isinstance(command, Append):
                return
        if commands and event == LAST:
            return


def _list_waits(look: Situation) -> Iterator[Reason]:
    """What the rows have to do, which nobody can do for them."""
    old, new = look.old, look.new
    if new is not None and look.state == "catching_up" and not look.is_caught_up():
        yield _explain_behind(old, new)
    if old is not None and look.state == "fenced" and not look.has_old_passed():
        is_handed = new is not None and new.record.channel == "carry"
        yield Reason("hands on" if is_handed else "drains", old.record.epoch, old.upto)
    if new is not None and new.into is not None and new.begun is None and new.comes_after:
        yield Reason("makes room", new.record.epoch)


def _explain_behind(old: EpochStory | None, new: EpochStory) -> Reason:
    watermark = find_watermark(new)
    if watermark is None:
        return Reason("waits for rows", new.record.epoch, names=new.without_batch)
    return Reason("catches up", new.record.epoch, window=find_watermark(old) if old else None)
