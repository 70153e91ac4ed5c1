"""What a story tells of what is not in it."""

from __future__ import annotations

from airflow_dagsched.switch.places import INBOX_SERVICE
from airflow_dagsched.switch.story import awaits_state
from tests.switch.drawn import FIRST, make_drained, make_epoch, make_fence, tell


def test_who_goes_on_with_state_waits_until_the_graph_before_it_has_ended():
    carried = make_epoch(2, channel="carry")
    begun = (*FIRST, carried, make_fence(1, 10.0))
    assert awaits_state(tell(*begun), carried)
    assert not awaits_state(tell(*begun, make_drained(1)), carried)


def test_what_fills_inboxes_is_in_no_log_and_waits_for_no_state():
    assert not awaits_state(tell(*FIRST), make_epoch(INBOX_SERVICE))
