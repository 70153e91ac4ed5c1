"""What a plan made part-way through a run does otherwise, and why."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from airflow_dagsched.errors import DoesNotFit, InvalidInput


class WorkersGone(Struct, frozen=True):
    """Workers of a running group are not there any more."""

    workers: tuple[str, ...]


class GroupsRefused(Struct, frozen=True):
    """The groups so far do not fit any more, or the author's lists are against them."""

    refusal: DoesNotFit | InvalidInput


class EndsSooner(Struct, frozen=True):
    """Other groups end what is left sooner, by more than the margin."""

    saved_s: float
    left_s: float
    """With the groups so far."""


RestartReason = WorkersGone | Literal["no room", "inputs made anew"]
"""Why a group that has begun has to begin again."""
ChangeReason = RestartReason | GroupsRefused | EndsSooner | Literal["as can be now"]


ChangeKind = Literal["new", "dissolved", "begins again", "moved", "resized"]


class Change(Struct, frozen=True):
    """What is different for one group, and why."""

    group: str
    what: ChangeKind
    reason: ChangeReason
