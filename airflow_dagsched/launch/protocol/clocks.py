"""When a try of a launch task began, by the clock of Airflow's server: the worker's own may be wrong.

::

    launch   made (its id) ── run started ── queued ── begins: asks the server for its time ── steps
    mirror   made (its id)      by the server's clock, too

A mirror believes no try that began before the mirror was made. Both moments are of the server's clock, or a worker
whose clock is ahead would seem to have begun after a clear that came later.
"""

from __future__ import annotations

APART_S = 3.0
"""How far two clocks that agree may seem apart: the server says whole seconds, and its answer takes time."""


def compute_begin(made: float, run_started: float | None, server: float | None) -> float:
    """The latest moment that the try surely did not begin before, in seconds since 1970; all by the server's clock.

    :param made: when its task instance was made. A clear makes some mirrors later than their launch task, though never
        later than it is over.
    :param run_started: when the run was last started: after the clear, or making, of all its tasks.
    :param server: the time as the try begins; None where the server does not say.
    """
    # Each of them is a lower bound, so the latest is the best of them.
    return max(made, run_started or 0.0, server or 0.0)


def compare_clocks(server: float, worker: float) -> str:
    """What is wrong with the clocks of the server and this worker at one moment; empty if nothing is."""
    ahead = worker - server
    if abs(ahead) <= APART_S:
        return ""
    return (
        f"the clock of this worker is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} that of Airflow's API "
        "server: leases, which drivers on other hosts look at, last that much longer or shorter; let both follow one "
        "time server"
    )
