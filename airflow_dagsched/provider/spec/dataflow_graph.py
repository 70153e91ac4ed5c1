"""The author's graph around one dataflow, as values: read once from the DAG, when all edges are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.provider.spec.channel_declaration import DeclaredChannel


class DataflowGraph(Struct, frozen=True):
    """The author's graph around one dataflow. Ids of steps are the dataflow's, of tasks the DAG's."""

    dataflow: Dataflow
    ordinary: tuple[str, ...]
    """Task ids of the ordinary tasks a step waits for, directly or not."""
    inputs: dict[str, tuple[Output, ...]]
    """Datasets each step reads."""
    upstream: dict[str, tuple[str, ...]]
    """Steps directly above each step, by channel or plain edge."""
    outside: dict[str, tuple[str, ...]]
    """Ordinary tasks directly above each step."""
    consumed: dict[str, tuple[str, ...]]
    """Outputs of each step that ordinary tasks take as an argument."""
    channels: dict[str, Mapping[Output, DeclaredChannel]]
    """By step what is said of the channels that it reads; of most steps nothing."""

    def sort_steps(self) -> tuple[str, ...]:
        """All steps, those above first; ties in the author's order."""
        done: dict[str, None] = {}
        for name in self.upstream:
            self._visit_above(name, done)
        return tuple(done)

    def _visit_above(self, start: str, done: dict[str, None]) -> None:
        """Put ``start`` into ``done`` behind all above it."""
        stack = [start]  # no recursion: a chain of steps may be longer than Python's stack
        while stack:
            waiting = [up for up in self.upstream[stack[-1]] if up not in done]
            if waiting:
                stack.append(waiting[0])
            else:
                done.setdefault(stack.pop())


def find_first_input(arguments: Mapping[str, Any]) -> str | None:
    """The first argument of a step that is the rows of a step; None if none is."""
    return next((name for name, value in arguments.items() if isinstance(value, Output)), None)
