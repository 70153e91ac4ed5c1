"""One try of a launch task among those of its run that may run each other's steps: what it has claimed, what it waits
for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
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
    taken: tuple[str, ...] = ()
    """Steps of other launch tasks that this try runs."""
    awaited: dict[str, Claim] = field(default_factory=dict)
    """Its own steps that others run."""
    gave_back: bool = False
    """Whether what it had taken was too much for it."""
    pause: Callable[[float], None] = time.sleep

    def claim_own(self, steps: Iterable[str]) -> None:
        """As the try begins."""
        own = tuple(steps)
        self.awaited = self.file.change(lambda claims: claims.begin_try(self.mine, own)).find_others(self.mine, own)

    def take(self, free: Mapping[str, Claim | None]) -> bool:
        """Claim others' steps that are ``free``, each with its claim of before; whether all are this try's now."""
        claims = self.file.change(lambda claims: claims.swap_claims(self.mine, free))
        held = claims.holds(self.mine, free)
        self.taken = (*self.taken, *free) if held else self.taken
        return held

    def give_back(self, done: Collection[str]) -> None:
        """Leave what was taken to whose it is, but for what is ``done``."""
        left = {*self.taken} - {*done}
        self.file.change(lambda claims: claims.drop_claims(self.mine, left))
        self.taken, self.gave_back = (), True

    def settle_awaited(self) -> dict[str, StepDone]:
        """Look once at those that run this try's steps. Returns the ends of what is done; what is not waited for any
        more is this try's own again.
        """
        seen = self.look({claim.by for claim in self.awaited.values()})
        judged = {
            step: judge_claim(claim, seen[claim.by], step, self.mine.try_id.round)
            for step, claim in self.awaited.items()
        }
        done = {step: end for step, end in judged.items() if isinstance(end, StepDone)}
        free = {step: self.awaited[step] for step, end in judged.items() if end == "free"}
        claims = self.file.change(partial(self._claim_freed, free=free)) if free else Claims()
        # Another may have claimed it since it was judged. (Where nothing can be written nobody has.)
        others = {step: each for step, each in claims.find_others(self.mine, free).items() if each != free[step]}
        waiting = {step: claim for step, claim in self.awaited.items() if judged[step] == "wait"}
        self.awaited = {**waiting, **others}
        return done

    def _claim_freed(self, claims: Claims, free: Mapping[str, Claim]) -> Claims:
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
