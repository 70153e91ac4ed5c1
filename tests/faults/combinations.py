"""Who is killed in which state of a switch, and why else not: what ``make test-faults`` plays."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import get_args

from airflow_dagsched.switch.state import STATES, State

PLAYED = "x"
REASONS = {
    "alone": "no other graph is asked for yet",
    "unborn": "nobody has started it yet, or may: that is what this state, or this way to switch, is",
    "skipped": "this way to switch has no such state",
    "gone": "the state is left, or comes, with its end",
    "same": "who takes over does so by the same few lines: it is killed, or takes over, before, in and behind a switch",
    "worker": "its task is in a worker until its queries run, and that is killed in this state",
}
"""Why somebody can't be killed in a state."""
ROWS = """
                              steady   requested  deploying  catching_up  fenced   retiring  aborted
replay, old driver            x        x          x          x            x        x         x
replay, new driver            alone    unborn     x          x            x        x         x
replay, driver of both        x        x          x          x            x        x         x
replay, worker of Spark       x        x          x          x            x        x         x
replay, trigger of old        x        x          x          x            x        x         x
replay, trigger of new        alone    worker     worker     x            x        x         gone
replay, worker of new         alone    x          x          gone         gone     gone      gone
executor at each line         x        x          x          x            x        x         x
replay, executors             x        x          x          x            x        x         x
inbox, service                x        x          x          x            x        x         x
sequential, executors         x        x          skipped    skipped      x        x         skipped
sequential, old driver        x        unborn     skipped    skipped      x        x         skipped
sequential, new driver        x        unborn     skipped    skipped      unborn   unborn    skipped
carry, old driver             x        x          x          skipped      x        gone      x
carry, new driver             alone    unborn     x          skipped      x        x         x
standby, standby              x        same       same       same         same     same      same
standby, driver               x        same       x          same         same     same      same
"""
"""Executors: all processes at once that advance the switch, drivers and tasks, so that nobody is left who would."""


def list_states(who: str) -> set[State]:
    """States in which they must have been killed, by the table."""
    return {state for state, cell in read_rows()[who].items() if cell == PLAYED}


def list_met(who: str, seen: AbstractSet[State]) -> AbstractSet[State]:
    """Of the states in which they were killed those that say something: who is about to end may be met, or not."""
    return {state for state in seen if read_rows()[who][state] != "gone"}


def read_rows() -> dict[str, dict[State, str]]:
    """Who -> state -> what the table says."""
    header, *lines = ROWS.strip("\n").splitlines()
    states = header.split()
    assert (*states,) == STATES == get_args(State)
    rows = {}
    for line in lines:
        who, *cells = [each for each in line.split("  ") if each.strip()]
        rows[who.strip()] = dict(zip(STATES, map(str.strip, cells), strict=True))
    return rows
