"""Which launch task of a run runs which step: each claims its own as it begins, and others' that it takes.

::

    K begins    claims its own a b; nobody has claimed s of L: takes it          {a: K, b: K, s: K}
    L begins    claims its own r; s is K's: waits for it, and runs it if K ends without it

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


@dataclass(frozen=True, slots=True)
class Claims:
    """Of one run, since it was last cleared."""

    since: TryId = NO_TRY
    """Without a number of a try: the round."""
    claims: Mapping[str, Claim] = field(default_factory=dict)
    """Step -> who runs it."""

    def begin_try(self, mine: Claim, steps: Iterable[str]) -> Claims:
        """As the try ``mine`` begins: what earlier tries of its launch task claimed is free again, and of its own
        ``steps`` all that are free are its.

        A try from before the last clear changes nothing. What others claimed before that they may be at work on still.
        """
        this_round = replace(mine.try_id, try_number=0)
        if this_round < self.since or self._is_followed(mine):
            return self
        others = {step: each for step, each in self.claims.items() if each.by != mine.by}
        return Claims(this_round, {**dict.fromkeys(steps, mine), **others})

    def _is_followed(self, mine: Claim) -> bool:
        """Whether a later try of its launch task has begun: then it is frozen no more, and too late."""
        return any(each.by == mine.by and mine.try_id < each.try_id for each in self.claims.values())

    def swap_claims(self, mine: Claim, before: Mapping[str, Claim | None]) -> Claims:
        """All steps of ``before`` are the try's, if each is still claimed as it says there; else nothing changes."""
        if replace(mine.try_id, try_number=0) != self.since:
            return self
        if any(self.claims.get(step) != expected for step, expected in before.items()):
            return self
        return replace(self, claims={**self.claims, **dict.fromkeys(before, mine)})

    def drop_claims(self, mine: Claim, steps: Iterable[str]) -> Claims:
        """``steps`` are nobody's, as far as they were the try's."""
        left = {*steps}
        kept = {step: each for step, each in self.claims.items() if each != mine or step not in left}
        return replace(self, claims=kept)

    def find_others(self, mine: Claim, steps: Iterable[str]) -> dict[str, Claim]:
        """Those of ``steps`` that another launch task has claimed."""
        return {step: self.claims[step] for step in steps if step in self.claims and self.claims[step].by != mine.by}

    def find_free(self, mine: Claim, steps: Iterable[str], busy: Collection[str]) -> dict[str, Claim | None]:
        """Those of ``steps`` that nobody runs, with their claim, if there is one: it is of before the last clear, by a
        launch task that is not ``busy``.
        """
        now = {step: self.claims.get(step) for step in steps}
        return {
            step: each
            for step, each in now.items()
            if each is None or (each.try_id.round != mine.try_id.round and each.by not in busy)
        }

    def holds(self, mine: Claim, steps: Iterable[str]) -> bool:
        """Whether all ``steps`` are the try's."""
        return all(self.claims.get(step) == mine for step in steps)
