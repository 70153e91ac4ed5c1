"""The lag of a copy from the offset it has reached: what a worker reports, against the end of its log.

Source: ``ClientState.computeTaskLags`` of Apache Kafka.
"""

from __future__ import annotations

from airflow_dagsched.placement.high_availability.values import RUNNING, Lag


def lag_of(reached: Lag, end: float) -> Lag:
    """Rows to restore. ``reached`` counts rows from the start of the log; running and unknown stay what they are.

    A copy that claims more than there is cannot be trusted: all of its state counts as missing.
    """
    if reached is None or reached == RUNNING:
        return reached
    assert not isinstance(reached, str)
    return end if reached > end else end - reached
