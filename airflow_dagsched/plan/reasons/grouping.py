"""Why steps are one group, why a channel between two groups is cut, and what cutting saves."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from airflow_dagsched.errors import DoesNotFit


class Between(Struct, frozen=True):
    """An ordinary task, or a step that can share no application with them, on the way from step to step."""

    name: str
    kind: Literal["task", "isolated step", "step in a pool", "step with other settings", "step of another dataflow"]
    pool: str = ""
    """Of a step that is in another one; empty: the dataflow's."""


class JoinedByChannels(Struct, frozen=True):
    """Pipelined channels join the steps of the group."""

    steps: int


class WaitForTheSame(Struct, frozen=True):
    """No channel joins the steps, but apart they would wait for each other, or end no sooner."""

    steps: int


class ComesAfter(Struct, frozen=True):
    """What stands between the group and earlier steps of its kind."""

    between: Between


class ComesBefore(Struct, frozen=True):
    """What waits for the group, and stands between it and whatever comes behind: the first few."""

    between: tuple[Between, ...]
    more: int = 0


class CannotShare(Struct, frozen=True):
    """What keeps the group from steps that it is neither before nor behind: a few of the causes."""

    causes: tuple[ForcedReason, ...]


class CutBetween(Struct, frozen=True):
    """What stands between the ends of a channel, so that it is cut."""

    between: Between


class KeptApart(Struct, frozen=True):
    """The author's list ``apart`` names both steps."""

    src: str
    dst: str


class IsolatedStep(Struct, frozen=True):
    """The author isolates one end of a channel."""

    name: str


class DifferentPools(Struct, frozen=True):
    """The ends of a channel have these pools of Airflow."""

    src: str
    dst: str


class DifferentSettings(Struct, frozen=True):
    """Application settings in which the ends of a channel differ; names only, for a value may be a secret."""

    names: tuple[str, ...]


class GroupLimit(Struct, frozen=True):
    """The settings allow so many steps a group."""

    steps: int


class TogetherTooLarge(Struct, frozen=True):
    """The two groups as one do not fit the cluster."""

    refusal: DoesNotFit


class Saving(Struct, frozen=True):
    """What the chosen grouping saves against another: seconds first, then applications, then core-seconds."""

    rival: str
    """The other grouping: the two groups as one, or a kind that was compared."""
    seconds: float
    core_seconds: float
    applications: int = 0
    is_checkpoint: bool = False
    """Whether it is so only since failures are to be expected."""
    is_whole: bool = False
    """Whether all groups are compared, not two."""
    is_by_regret: bool = False
    """Whether the groups were chosen for what runtimes may be, not for these seconds."""


ForcedReason = CutBetween | KeptApart | IsolatedStep | DifferentPools | DifferentSettings
"""What keeps the ends of a channel apart, whatever the sizes."""
CutReason = (
    ForcedReason
    | GroupLimit
    | TogetherTooLarge
    | Saving
    | Literal["settings", "settings of groups", "too large", "begun", "wired"]
)
"""Why two groups are not one."""


class ApartFrom(Struct, frozen=True):
    """The group could be one with another, and is not."""

    group: str
    reason: CutReason


GroupReason = (
    JoinedByChannels
    | WaitForTheSame
    | ComesAfter
    | ComesBefore
    | CannotShare
    | ApartFrom
    | Literal["only group", "isolated", "no channel"]
)
"""Why these steps, and no others, are one group."""
