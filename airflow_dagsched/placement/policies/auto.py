"""Auto, the default: the policy that suits what is to be placed.

a streaming step keeps state        high_availability
a source whose hosts are known      data_locality
everything fits at once             cheapest
else                                first_fit

It says what it compared: what the policy is for, of its placement and of a rival's.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.model.units import MIB
from airflow_dagsched.placement.policies.cheapest import compute_price, fits_at_once
from airflow_dagsched.placement.policies.distance import select_blocks
from airflow_dagsched.placement.request import Request
from airflow_dagsched.placement.values import name_instance

RIVALS: Mapping[str, str] = {
    "high_availability": "first_fit",
    "data_locality": "first_fit",
    "cheapest": "first_fit",
    "first_fit": "round_robin",
}
"""What each policy is compared with."""
MAX_PAIRS = 10_000
"""Instances times workers, at most, of what is placed a second time to compare."""

Workers = Mapping[str, str]
"""``step/index`` -> worker."""


def is_comparable(request: Request) -> bool:
    """Whether there is a choice, and few enough to place all once more."""
    return len(request.offers) > 1 and request.instance_count * len(request.offers) <= MAX_PAIRS


def describe_comparison(
    policy: str, request: Request, chosen: Workers, rival: Workers | None, before: Assignment | None
) -> str:
    """What the policy gains, in its own measure; ``rival``: where the other policy would have put all, if it could."""
    figure = _describe_figure(policy, request, chosen, before)
    other = "finds no room" if rival is None else _describe_figure(policy, request, rival, before)
    return f"{figure}; {RIVALS[policy]} {other}"


def _describe_figure(policy: str, request: Request, workers: Workers, before: Assignment | None) -> str:
    if policy == "high_availability":
        moved = _count_moved(workers, before)
        return f"{moved} of {len(workers)} instances leave their worker" if before else "no instance was anywhere"
    if policy == "data_locality":
        remote, total = sum_remote_bytes(request, workers)
        return f"{remote / MIB:,.0f} of {total / MIB:,.0f} MiB read from afar"
    if policy == "cheapest":
        return f"costs {_price(request, workers):,.6g}"
    return f"uses {len(set(workers.values()))} of {len(request.offers)} workers"


def _count_moved(workers: Workers, before: Assignment | None) -> int:
    return sum(workers[one] != worker for one, worker in (before.active if before else {}).items() if one in workers)


def sum_remote_bytes(request: Request, workers: Workers) -> tuple[int, int]:
    """Bytes that are read on another host than any that holds them, and all whose hosts are known."""
    host = {offer.worker: offer.host for offer in request.offers}
    read = [
        (block, host[workers[name_instance(step.id, index)]])
        for step, index in request.list_instances()
        for block in select_blocks(step, index)
        if block.hosts
    ]
    return sum(block.bytes for block, here in read if here not in block.hosts), sum(block.bytes for block, _ in read)


def _price(request: Request, workers: Workers) -> float:
    first = {offer.worker: at for at, offer in reversed(list(enumerate(request.offers)))}
    places = [
        [first[workers[name_instance(step.id, index)]] for index in range(step.parallelism)] for step in request.steps
    ]
    return compute_price(request, places)


def choose_policy(request: Request) -> tuple[str, str]:
    """The name of a policy, and why it."""
    # State first: away from it an instance restores for minutes, away from a block it reads for seconds.
    if request.stateful:
        return "high_availability", "a streaming step keeps state"
    if any(block.hosts for step in request.steps for block in step.blocks):
        return "data_locality", "hosts of a source's blocks are known"
    if fits_at_once(request):
        return "cheapest", "everything fits at once"
    return "first_fit", "not everything fits at once"
