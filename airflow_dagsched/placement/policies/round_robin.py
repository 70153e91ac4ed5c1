"""Round robin: instances to workers in turn, over all of them (seed: Twister2's RoundRobinTaskScheduler).

    t1(2) t2(2) a(1) b(1) on three workers      w1  t1/0  t2/0  a/0
                                                w2  t1/1  t2/1  b/0
                                                w3

Instance i of a step that has several, but no more than there are workers, goes to worker i: beside instance i of the
other such steps, whose rows it reads. Steps of one instance, and of more than there are workers, carry the turn on,
so that they do not all meet on the first worker. A worker without room is passed over.
"""

from __future__ import annotations

from airflow_dagsched.placement.exhaustive_search import Placement
from airflow_dagsched.placement.first_offer_index import FirstOfferIndex
from airflow_dagsched.placement.offer_capacity import OfferCapacity, compute_limits
from airflow_dagsched.placement.policies.greedy import ChooseOffer, order_steps, place_greedily
from airflow_dagsched.placement.request import Request, StepRequest


def place_round_robin(request: Request) -> Placement:
    """An offer for each instance. Raises ``DoesNotFit``."""
    order = order_steps(request)
    return place_greedily(
        request, compute_limits(request), order, _make_chooser(_choose_starts(order, len(request.offers)))
    )


def _choose_starts(order: list[StepRequest], workers: int) -> dict[int, int]:
    """The worker of each step's first instance, by the step's number."""
    starts, turn = {}, 0
    for step in order:
        # Others begin at 0, so that instance i of each meets instance i of the rest on worker i.
        carries = step.parallelism == 1 or step.parallelism > workers
        starts[step.number] = turn if carries else 0
        turn += step.parallelism if carries else 0
    return starts


def _make_chooser(starts: dict[int, int]) -> ChooseOffer:
    by_room: FirstOfferIndex | None = None

    def choose_offer(capacity: OfferCapacity, step: StepRequest, index: int) -> int | None:
        nonlocal by_room
        by_room = by_room or FirstOfferIndex(capacity)
        turn = (starts[step.number] + index) % len(capacity.limits)
        at = by_room.find_first(step, index, turn)
        return by_room.find_first(step, index) if at is None else at

    return choose_offer
