"""Every order in which routers, drivers, executors and a crash can come, where rows come by inboxes."""

from __future__ import annotations

import pytest

from tests.switch.inbox.inbox_model import Box, InboxModel
from tests.switch.model import Broken, explore


def check(executors: int, crashes: int, least: int, length: int) -> None:
    """No window is lost, comes twice, or without a row; and the switch can always end."""
    explored = explore(InboxModel("inbox", length), executors, crashes)
    print(f"inbox, {executors} executors, {crashes} crashes: {explored.worlds} states seen, {explored.ends} ends")
    assert explored.stuck == ()
    assert explored.worlds >= least
    assert explored.states >= {"requested", "deploying", "catching_up", "fenced"}


def test_one_executor_in_every_order():
    check(executors=1, crashes=0, least=5_000, length=3)


def test_one_crash_anywhere():
    check(executors=1, crashes=1, least=5_000, length=2)


@pytest.mark.faults
def test_two_executors_and_one_crash_in_every_order():
    check(executors=2, crashes=1, least=20_000, length=2)


def test_a_router_that_looks_for_no_hold_is_found():
    """Its row is the old graph's, behind the fence: no graph has it."""

    class Heedless(InboxModel):
        def route(self, name: str, box: Box, known: tuple[object, ...]) -> Box:
            return super().route(name, box._replace(held=None), known)._replace(held=box.held)

    with pytest.raises(Broken, match="is routed to epoch 1, and the fence is"):
        explore(Heedless("inbox", 3), executors=1, crashes=0)
