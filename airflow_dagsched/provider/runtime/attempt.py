"""What one try of a launch task has at hand: Airflow's facts, frozen, and what it has done so far."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from airflow_dagsched.launch.escalation.levels import LEVELS, Level
from airflow_dagsched.launch.history.learning import Ran
from airflow_dagsched.launch.moves.claims import Claim
from airflow_dagsched.launch.moves.takeover import NOTHING_TAKEN, Decision
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.provider.clusters.plan_facts import read_asked_run, runs_per_step
from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
from airflow_dagsched.provider.following.follower import Follower
from airflow_dagsched.provider.following.reporting import open_follower
from airflow_dagsched.provider.following.standing import Standing, make_standing, make_unrivalled
from airflow_dagsched.provider.following.telling import can_tell_beside
from airflow_dagsched.provider.moving.claims_file import ClaimsFile
from airflow_dagsched.provider.moving.moves import Moves, make_look
from airflow_dagsched.provider.runtime.folders import list_bundle_roots, locate_group_folder
from airflow_dagsched.provider.runtime.gather_facts import gather_run_facts
from airflow_dagsched.provider.runtime.history import keep_history
from airflow_dagsched.provider.runtime.memory import Memory
from airflow_dagsched.provider.spec.run_history import locate_history

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.provider.runtime.launch_task import LaunchTask
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec, LaunchSpec
    from airflow_dagsched.provider.spec.run_facts import RunFacts
    from airflow_dagsched.provider.submission.input_pruning import Pruning

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Attempt:
    """One try of a launch task."""

    launch: LaunchTask
    context: Context
    facts: RunFacts
    follower: Follower
    memory: Memory
    folder: Path
    roots: tuple[Path, ...]
    began: float = field(default_factory=time.monotonic)
    predicted_s: float = 0.0
    work: dict[str, float] = field(default_factory=dict)
    """Shares of the run's work that were measured, declared and assumed as the last submit was planned."""
    applications: list[Ran] = field(default_factory=list)
    """Those that ended well."""
    cuts: list[str] = field(default_factory=list)
    """Why the group runs in several applications."""
    left: dict[str, Any] = field(default_factory=dict)
    """What the run had left as this try began."""
    pruning: Pruning | None = None
    """What the last submit knew of its inputs."""
    stranded: int = 0
    """Applications that were left without workers."""
    standing: Standing = field(default_factory=make_unrivalled)
    ask: Callable[[], RunFacts] | None = None
    """How far the run is now; None: Airflow is not there to be asked."""
    moves: Moves | None = None
    """None: launch tasks of this dataflow run their own steps alone."""
    decisions: list[Decision] = field(default_factory=list)
    """What of later launch tasks was taken as it began, and then, and why."""
    regrouped: LaunchSpec | None = None
    """The launch task with what it has taken; None: nothing."""

    @classmethod
    def begin(cls, launch: LaunchTask, context: Context) -> Attempt:
        """Gather the facts and open the feed: from here on the mirrors hear of this try."""
        spec, ti = launch.spec, context["ti"]
        facts = gather_run_facts(spec, context)
        folder = locate_group_folder(spec, facts)
        standing = make_standing(spec.task_id, ti, facts.try_id)

        def show_page(address: str) -> None:
            launch.spark_ui = address

        feed = Feed(standing.nonce, facts.try_id, pruned=spec.flow.pruned, began=facts.began)
        mirrors = {name: step.task_id for name, step in spec.flow.steps.items()}
        follower = open_follower(ti, mirrors, feed, standing, show_page)
        # Not the file of the parse: where a DAG is made by a helper, Airflow names the real one only afterwards.
        roots = list_bundle_roots(launch.dag.fileloc, context)
        ask = partial(gather_run_facts, spec, context)
        attempt = cls(launch, context, facts, follower, Memory(folder), folder, roots, standing=standing, ask=ask)
        # In ``dag.test()`` tasks come one after another: nothing is won by running a step earlier.
        if spec.flow.replan == "regroup" and can_tell_beside():
            claim = Claim(spec.task_id, facts.try_id)
            attempt.moves = Moves(ClaimsFile(folder.parent), claim, make_look(ti))
        return attempt

    @property
    def spec(self) -> LaunchSpec:
        """The launch task, as it was declared."""
        return self.launch.spec

    @property
    def own(self) -> tuple[str, ...]:
        """The steps of its group: how they end is how it ends."""
        return self.spec.group.steps

    @property
    def steps(self) -> tuple[str, ...]:
        """What this try runs, or finds done: its own steps, and those that it has taken."""
        return self.own if self.moves is None else (*self.own, *self.moves.taken)

    @property
    def planned(self) -> LaunchSpec:
        """The launch task as it is planned: with what it has taken, unless that was given back."""
        has_more = self.moves is not None and bool(self.moves.taken)
        return self.regrouped if has_more and self.regrouped is not None else self.spec

    @property
    def flow(self) -> DataflowSpec:
        """The dataflow, as it was declared."""
        return self.launch.spec.flow

    @property
    def level(self) -> Level:
        """How carefully the group is run now: an earlier try may have run out of memory."""
        return LEVELS[self.memory.level]

    @cached_property
    def is_per_step(self) -> bool:
        """Whether each step is submitted by itself, as the author or the run's configuration asks for."""
        return runs_per_step(self.flow, read_asked_run(self.facts.conf))

    @cached_property
    def hook(self) -> PlannerHook:
        """Asks the cluster; one for all submits of the try."""
        frozen = self.flow.replan == "off"
        return PlannerHook(
            self.flow.conn_id, keep_history(locate_history(self.flow), self.folder.parent) if frozen else None
        )

    def describe_replan(self) -> dict[str, Any]:
        """What was planned anew as this try began, and later, as the launch task returns it."""
        first, *later = (describe_decision(each) for each in self.decisions or (NOTHING_TAKEN,))
        left = self.moves.left if self.moves is not None else {}
        return {"mode": self.flow.replan, **first, "later": later, "left": left}

    def look_anew(self) -> None:
        """From now on the facts are how far the run is at this moment; of this try what it has told itself."""
        if self.ask is not None:
            found = self.ask()
            feeds = {**found.feeds, self.spec.task_id: self.follower.feed}
            self.facts = replace(self.facts, states=found.states, skipped=found.skipped, feeds=feeds)

    def note_cut(self, why: str) -> None:
        """Say, in the log and in what the launch task returns, why there are more applications than groups."""
        shown = self.follower.masking.text(why)
        log.warning("%s: %s", self.spec.group.id, shown)
        self.cuts.append(shown)


def describe_decision(decision: Decision) -> dict[str, Any]:
    """As it is put into an XCom."""
    return {**msgspec.to_builtins(decision), "take": list(decision.take)}
