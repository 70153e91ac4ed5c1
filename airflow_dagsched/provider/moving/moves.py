"""One try of a launch task among those of its run that may run each other's steps: what it has claimed, what it waits
for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom

from airflow_dagsched.launch.moves.claims import Claim, Claims
from airflow_dagsched.launch.moves.elsewhere import Seen, judge_claim
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.feed import FEED_KEY
from airflow_dagsched.launch.protocol.push_limit import read_feed
from airflow_dagsched.provider.moving.claims_file import ClaimsFile

Look = Callable[[Collection[str]], Mapping[str, Seen]]
"""At launch tasks of the run, by their task ids."""


@dataclass(eq=False)
class Moves:
    """What one try has of its run's claims."""

    file: ClaimsFile
    mine: Claim
    look: Look
    own: frozenset[str] = frozenset()
    """Its launch task's steps that it has to run, or to wait for."""
    taken: tuple[str, ...] = ()
    """Steps of other launch tasks that this try runs."""
    awaited: dict[str, Claim] = field(default_factory=dict)
    """Its own steps that others run."""
    lost: set[str] = field(default_factory=set)
    """What it had taken, and another launch task is to run all the same."""
    left: dict[str, str] = field(default_factory=dict)
    """Of what it had offered, who has claimed it."""
    gave_back: bool = False
    """Whether what it had taken was too much for it."""
    pause: Callable[[float], None] = time.sleep

    def claim_own(self, steps: Iterable[str]) -> None:
        """As the try begins."""
        self.own = own = frozenset(steps)
        self.awaited = self.file.change(lambda claims: claims.begin_try(self.mine, own)).find_others(self.mine, own)

    def take(self, free: Mapping[str, Claim | None]) -> bool:
        """Claim others' steps that are ``free``, each with its claim of before; whether all are this try's now."""
        claims = self.file.change(lambda claims: claims.swap_claims(self.mine, free))
        held = claims.holds(self.mine, free)
        self.taken = (*self.taken, *free) if held else self.taken
        return held

    def offer(self, steps: Collection[str]) -> None:
        """There is no room for ``steps`` yet: others may claim them, until this try begins them."""
        self.file.change(lambda claims: claims.offer_claims(self.mine, steps))

    def begin(self, steps: Collection[str]) -> set[str]:
        """``steps`` are to be submitted. Returns those that others have claimed since they were offered: what is this
        try's own of them it waits for.
        """
        claims = self.file.change(lambda claims: claims.begin_steps(self.mine, steps))
        # What it has taken it runs only as long as it is known to be its.
        lost = {step for step in self.taken if step in steps and claims.claims.get(step) != self.mine}
        return self._note_left(claims, steps) | self._lose_taken(lost)

    def find_left(self, steps: Collection[str]) -> set[str]:
        """Those of the offered ``steps`` that others have claimed by now."""
        return self._note_left(self.file.read(), steps)

    def _note_left(self, claims: Claims, steps: Collection[str]) -> set[str]:
        others = {step: each for step, each in claims.find_others(self.mine, steps).items() if not each.offered}
        # Nobody has its own steps who is not as far.
        own = {step: each for step, each in others.items() if step in self.own and each.is_as_far(self.mine)}
        self.awaited |= own
        self.left |= {step: each.by for step, each in own.items()}
        return {*own} | self._lose_taken({*self.taken} & {*others})

    def _lose_taken(self, lost: set[str]) -> set[str]:
        self.taken = tuple(step for step in self.taken if step not in lost)
        self.lost |= lost
        return lost

    def drop_taken(self, steps: Collection[str]) -> None:
        """Of what was taken, leave ``steps`` to whose they are."""
        dropped = self._lose_taken({*self.taken} & {*steps})
        if dropped:
            self.file.change(lambda claims: claims.drop_claims(self.mine, dropped))

    def give_back(self, done: Collection[str]) -> None:
        """Leave what was taken to whose it is, but for what is ``done``."""
        self.drop_taken({*self.taken} - {*done})
        self.taken, self.gave_back = (), True

    def settle_awaited(self) -> dict[str, StepDone]:
        """Look once at those that run this try's steps. Returns the ends of what is done; what is not waited for any
        more is this try's own again.
        """
        there = self.file.read()
        # What was given back is as good as offered. Of claims that are lost with their file nobody knows better.
        dropped = there != Claims()
        known = there.claims
        now = {step: known.get(step, replace(claim, offered=dropped)) for step, claim in self.awaited.items()}
        seen = self.look({claim.by for claim in now.values()})
        judged = {step: judge_claim(claim, seen[claim.by], step, self.mine.try_id.round) for step, claim in now.items()}
        done = {step: end for step, end in judged.items() if isinstance(end, StepDone)}
        free = {step: known.get(step) for step, end in judged.items() if end == "free"}
        claims = self.file.change(partial(self._claim_freed, free=free)) if free else Claims()
        # Another may have claimed it since it was judged. (Where nothing can be written nobody has.)
        others = {step: each for step, each in claims.find_others(self.mine, free).items() if each != free[step]}
        waiting = {step: claim for step, claim in now.items() if judged[step] == "wait"}
        self.awaited = {**waiting, **others}
        return done

    def _claim_freed(self, claims: Claims, free: Mapping[str, Claim | None]) -> Claims:
        for step, before in free.items():
            claims = claims.swap_claims(self.mine, {step: before})
        return claims


def make_look(ti: Any) -> Look:
    """Asks Airflow."""

    def look(launches: Collection[str]) -> dict[str, Seen]:
        # All states before any feed.
        answer = RuntimeTaskInstance.get_task_states(dag_id=ti.dag_id, task_ids=sorted(launches), run_ids=[ti.run_id])
        states = answer.get(ti.run_id, {})
        return {each: Seen(states.get(each), read_feed(_pull_feed(ti, each))) for each in launches}

    return look


def _pull_feed(ti: Any, launch: str) -> Any:
    return XCom.get_one(key=FEED_KEY, dag_id=ti.dag_id, task_id=launch, run_id=ti.run_id)
