"""Which orders mean something as things stand, and of which epoch they are."""

from __future__ import annotations

import pytest

from airflow_dagsched.switch.advising.orders import choose_ordered
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.signs import Order
from airflow_dagsched.switch.story import Story
from tests.switch.drawn import (
    FIRST,
    go_on,
    make_batch,
    make_epoch,
    make_fence,
    make_started,
    make_stopped,
    tell,
)

ONE = tell(*FIRST)
NEW = make_epoch(2, boundary=20.0), make_started(2), make_batch(2, 0, kept=0, watermark=20.0)
BOTH = go_on(ONE, make_batch(1, 1, 10, 20), *NEW)
FENCED = go_on(BOTH, make_fence(1, 20.0))


@pytest.mark.parametrize(
    ("story", "order", "chosen"),
    [
        (Story(), "stop", Reason("nothing runs")),
        (ONE, "stop", (1,)),
        (tell(*FIRST[:1]), "stop", (1,)),
        (BOTH, "stop", (1, 2)),
        (FENCED, "stop", (1, 2)),
        (go_on(FENCED, make_stopped(1, x_cause="person")), "stop", (2,)),
        (go_on(ONE, make_stopped(1, x_cause="person")), "stop", Reason("nothing runs")),
        (ONE, "abort", Reason("no switch")),
        (BOTH, "abort", (2,)),
        (FENCED, "abort", Reason("only forward", 1)),
        (ONE, "confirm", Reason("no switch")),
        (BOTH, "confirm", Reason("needs no word", 2)),
        (go_on(ONE, make_epoch(2, x_confirm="manual")), "confirm", Reason("nothing to confirm", 2, names=("out",))),
        (go_on(ONE, make_epoch(2, x_confirm="manual"), *NEW[1:]), "confirm", (2,)),
        (FENCED, "confirm", Reason("only forward", 1)),
    ],
)
def test_an_order_is_of_an_epoch_or_means_nothing(story: Story, order: Order, chosen: tuple[int, ...] | Reason) -> None:
    assert choose_ordered(story, order) == chosen
