"""What is above a step: all whose rows it gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_dagsched.launch.protocol.calls import Output


def list_above(step: str, inputs: Mapping[str, Iterable[Output]]) -> frozenset[str]:
    """The step and all whose rows it gets, directly or not.

    :param inputs: step -> what it takes.
    """
    found, left = {step}, [step]
    while left:
        more = {output.step for output in inputs[left.pop()]} - found
        found |= more
        left += more
    return frozenset(found)
