"""Which launch task of a run runs which step: each claims its own as it begins, and others' that it takes.

::

    K begins    claims its own a b; nobody has claimed s of L: takes it          {a: K, b: K, s: K}
    L begins    claims its own r; s is K's: waits for it, and runs it if K ends without it
    L waits     for room: it offers r. M, which begins, may take it; else L begins it once there is room

Claims keep two launch tasks from running a step at one moment. They are no truth: where the file with them is lost,
nobody has taken anything, and what is done is in committed records as ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from airflow_dagsched.launch.protocol.identity import NO_TRY, TryId


@dataclass(frozen=True, slots=True)
class Claim:
    """One try of one launch task runs a step."""

    by: str
    """Task id of the launch task."""
    try_id: TryId
    offered: bool = False
    """It has not begun, for want of room: whoever can run it sooner may claim it."""

    def is_same_try(self, other: Claim) -> bool:
        """Whether both are of one try of one launch task."""
        return (self.by, self.try_id) == (other.by, other.try_id)

    def is_offered_to(self, other: Claim) -> bool:
        """Whether another launch task may claim it: one that is as far, not one of before or after a clear."""
        return self.offered and self.by != other.by and self.is_as_far(other)

    def is_as_far(self, other: Claim | None) -> bool:
        """Whether both are there, and between the same clears."""
        return other is not None and self.try_id.round == other.try_id.round


@dataclass(frozen=True, slots=True)
class Claims:
    """Of one run, since it was last cleared."""

    since: TryId = NO_TRY
    """Without a number of a try: the round."""
    claims: Mapping[str, Claim] = field(default_factory=dict)
    """Step -> who runs it."""

    def begin_try(self, mine: Claim, steps: Iterable[str]) -> Claims:
        """As the try ``mine`` begins: what earlier tries of its launch task claimed is free again, and of its own
        ``steps`` all that are free, or offered, are its.

        A try from before the last clear changes nothing. What others claimed before that they may be at work on still.
        """
        this_round = replace(mine.try_id, try_number=0)
        if this_round < self.since or self._is_followed(mine):
            return self
        others = {step: each for step, each in self.claims.items() if each.by != mine.by}
        begun = {step: each for step, each in others.items() if not each.is_offered_to(mine)}
        return Claims(this_round, {**others, **dict.fromkeys(steps, mine), **begun})

    def _is_current(self, mine: Claim) -> bool:
        return replace(mine.try_id, try_number=0) == self.since

    def _is_followed(self, mine: Claim) -> bool:
        """Whether a later try of its launch task has begun: then it is frozen no more, and too late."""
        return any(each.by == mine.by and mine.try_id < each.try_id for each in self.claims.values())

    def swap_claims(self, mine: Claim, before: Mapping[str, Claim | None]) -> Claims:
        """All steps of ``before`` are the try's, if each is still claimed as it says there; else nothing changes.

        A try from before the last clear, which need not have been cleared, takes over from those of before alone.
        """
        if not (self._is_current(mine) or all(map(mine.is_as_far, before.values()))):
            return self
        if any(self.claims.get(step) != expected for step, expected in before.items()):
            return self
        return replace(self, claims={**self.claims, **dict.fromkeys(before, mine)})

    def offer_claims(self, mine: Claim, steps: Iterable[str]) -> Claims:
        """What of ``steps`` is the try's anybody else may claim, until it begins it."""
        offer = replace(mine, offered=True)
        return replace(self, claims={**self.claims, **{step: offer for step in steps if self.claims.get(step) == mine}})

    def begin_steps(self, mine: Claim, steps: Iterable[str]) -> Claims:
        """What of ``steps`` nobody else has begun is the try's, which begins it now."""
        if self._is_followed(mine):
            return self
        now = {step: self.claims.get(step) for step in steps}
        ours = {step for step, each in now.items() if self._is_current(mine) and (each is None or each.by == mine.by)}
        offers = {step for step, each in now.items() if each and (each.is_same_try(mine) or each.is_offered_to(mine))}
        free = [step for step in now if step in ours | offers]
        return replace(self, claims={**self.claims, **dict.fromkeys(free, mine)})

    def drop_claims(self, mine: Claim, steps: Iterable[str]) -> Claims:
        """``steps`` are nobody's, as far as they were the try's."""
        left = {*steps}
        kept = {step: each for step, each in self.claims.items() if not each.is_same_try(mine) or step not in left}
        return replace(self, claims=kept)

    def find_others(self, mine: Claim, steps: Iterable[str]) -> dict[str, Claim]:
        """Those of ``steps`` that another launch task has claimed."""
        return {step: self.claims[step] for step in steps if step in self.claims and self.claims[step].by != mine.by}

    def list_offered(self, mine: Claim) -> list[str]:
        """Steps that other launch tasks offer, since the same clear."""
        return [step for step, each in self.claims.items() if each.is_offered_to(mine)]

    def find_free(self, mine: Claim, steps: Iterable[str], busy: Collection[str]) -> dict[str, Claim | None]:
        """Those of ``steps`` that nobody runs, with their claim, if there is one: an offer, or one of before the last
        clear by a launch task that is not ``busy``.
        """
        now = {step: self.claims.get(step) for step in steps}
        return {
            step: each
            for step, each in now.items()
            if each is None
            or each.is_offered_to(mine)
            or (each.try_id.round != mine.try_id.round and each.by not in busy)
        }

    def holds(self, mine: Claim, steps: Iterable[str]) -> bool:
        """Whether all ``steps`` are the try's."""
        return all(self.claims.get(step) == mine for step in steps)
