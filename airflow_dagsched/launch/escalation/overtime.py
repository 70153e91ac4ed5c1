"""How the steps of a launch end that was given no more time: with what each of them waited for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_dagsched.launch.protocol.events import Failure, Stalled, StepDone
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.printable import format_duration


def explain_timeout(limit_s: float, stalls: Mapping[str, Stalled]) -> str:
    """One line about all of them."""
    waited = "; ".join(f"{step}: {stall.line}" for step, stall in sorted(stalls.items()))
    return f"execution_timeout of {format_duration(limit_s)}" + (f": {waited}" if waited else "")


def end_overtime_steps(
    steps: Iterable[str], feed: Feed, limit_s: float, stalls: Mapping[str, Stalled]
) -> tuple[StepDone, ...]:
    """Ends of those of ``steps`` that have none: what ran fails, with what it waited for; the rest was not run."""
    return tuple(_end_step(step, step in feed.running, limit_s, stalls) for step in steps if step not in feed.steps)


def _end_step(step: str, ran: bool, limit_s: float, stalls: Mapping[str, Stalled]) -> StepDone:
    # Not failed: nothing of it was tried, and what it is to do may be right.
    if not ran:
        return StepDone(step, "upstream_failed", reason=f"not run: {explain_timeout(limit_s, stalls)}")
    if step not in stalls:
        return StepDone(step, "failed", failure=Failure("timeout", explain_timeout(limit_s, stalls)))
    why = f"execution_timeout of {format_duration(limit_s)}: {stalls[step].line}"
    return StepDone(step, "failed", failure=Failure("timeout", why))
