"""Round robin: instances to workers in turn, over all of them (seed: Twister2's RoundRobinTaskScheduler).

    t1(2) t2(2) a(1) b(1) on three workers      w1  t1/0  t2/0  a/0
                                                w2  t1/1  t2/1  b/0
                                                w3

Instance i of a step that has several, but no more than there are workers, goes to worker i: beside instance i of the
other such steps, whose rows it reads. Steps of one instance, and of more than there are workers, carry the turn on,
so that they do not all meet on the first worker. A worker without room is passed over.
"""

from __future__ import annotations

from airflow_dagsched.placement.exact import Places
from airflow_dagsched.placement.first_room import FirstRoom
from airflow_dagsched.placement.greedy import Choose, greedy, in_order
from airflow_dagsched.placement.request import Request, Work
from airflow_dagsched.placement.room import Room, rooms_of


def round_robin(request: Request) -> Places:
    """An offer for each instance. Raises ``DoesNotFit``."""
    order = in_order(request)
    return greedy(request, rooms_of(request), order, _in_turn(_starts(order, len(request.offers))))


def _starts(order: list[Work], workers: int) -> dict[int, int]:
    """For each step, by its number, the worker of its first instance."""
    starts, turn = {}, 0
    for work in order:
        carries = work.parallelism == 1 or work.parallelism > workers
        starts[work.number] = turn if carries else 0
        turn += work.parallelism if carries else 0
    return starts


def _in_turn(starts: dict[int, int]) -> Choose:
    found: FirstRoom | None = None

    def choose(room: Room, work: Work, index: int) -> int | None:
        nonlocal found
        found = found or FirstRoom(room)
        turn = (starts[work.number] + index) % len(room.limits)
        at = found.first(work, index, turn)
        return found.first(work, index) if at is None else at

    return choose
