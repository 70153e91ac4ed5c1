"""Which steps of a group can run at all, given what is above them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.rules import decide_outcome


def find_hopeless(steps: Iterable[StepSpec]) -> dict[str, StepDone]:
    """Steps that cannot run whatever the others do, by step id; ``steps`` in topological order.

    A step that may run counts as a success for those below it, so what is returned is certain only where
    every step is hopeless; the launch task then submits nothing.
    """
    ended: dict[str, StepDone] = {}
    for spec in steps:
        done = _end_without_running(spec, {up: ended[up].state if up in ended else "success" for up in spec.upstream})
        if done is not None:
            ended[spec.id] = done
    return ended


def _end_without_running(spec: StepSpec, upstream: Mapping[str, str]) -> StepDone | None:
    # Before its rule: Airflow's branches skip what they don't follow whatever its rule is.
    if spec.skipped_by:
        return StepDone(spec.id, "skipped", reason=f"skipped by {spec.skipped_by!r}")
    states = {**spec.outside, **upstream}
    outcome = decide_outcome(spec.rule, tuple(states.values()))
    if outcome == "run":
        return None
    why = ", ".join(f"{name} is {state}" for name, state in sorted(states.items()) if state != "success")
    return StepDone(spec.id, outcome, reason=f"trigger rule {spec.rule}: {why or 'every upstream succeeded'}")
