"""Auto, the default: the policy that suits what is to be placed.

a streaming step keeps state        high_availability
a source whose hosts are known      data_locality
everything fits at once             cheapest
else                                first_fit
"""

from __future__ import annotations

from airflow_dagsched.placement.policies.cheapest import fits_at_once
from airflow_dagsched.placement.request import Request


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
