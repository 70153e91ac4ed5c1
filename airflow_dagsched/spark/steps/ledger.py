"""How each step's turn went, what that makes complete, and the events about it.

A step whose rows are only handed over inside the application is complete when all that it feeds are; one
batch says so for the whole chain, those above first::

    a ──> b ──> c ──> (table)      c's commit completes a, b and c: one batch [a, b, c]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from airflow_dagsched.launch.protocol.events import Event, Failure, LeftOut, StepDone, StepState
from airflow_dagsched.spark.outputs.commits import Committed
from airflow_dagsched.spark.steps.lineage import Lineage

BAD = frozenset({"failed", "upstream_failed"})


@dataclass(frozen=True, slots=True)
class Made:
    """How a step's turn went. ``defined``: its rows will be made by the job of a reader."""

    step: str
    state: Literal["defined"] | StepState
    passed_on: tuple[str, ...] = ()
    """Outputs handed over inside the application, and not committed."""
    rows: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    fused: tuple[str, ...] = ()
    commits: Mapping[str, Committed] = field(default_factory=dict)
    assumed: Mapping[str, int] = field(default_factory=dict)
    """Bytes of outputs that were counted, and not committed."""
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)
    """Outputs that have only the columns that are read."""
    value: Any = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    reason: str = ""


class Ledger:
    """All turns of one application.

    ``on_event`` gets the events of one batch, ``on_settled`` a step whose rows nobody needs any more.
    """

    def __init__(
        self,
        lineage: Lineage,
        targets: frozenset[str],
        on_event: Callable[..., None],
        on_settled: Callable[[str], None],
    ) -> None:
        self._lineage = lineage
        self._targets = targets
        self._on_event = on_event
        self._on_settled = on_settled
        self._guard = threading.RLock()
        self._made: dict[str, Made] = {}
        self._announced: dict[str, str] = {}
        self._settled: set[str] = set()

    def get_state(self, step: str) -> str:
        """As a trigger rule sees it: rows that are defined count as made."""
        state = self._made[step].state
        return "success" if state == "defined" else state

    def has_ended(self, step: str) -> bool:
        """Whether its turn is over."""
        return step in self._made

    def is_defined(self, step: str) -> bool:
        """Whether its rows are still to be made, by the job of a reader."""
        return self._made[step].state == "defined"

    def is_announced(self, step: str) -> bool:
        """Whether an event said how it ended."""
        return step in self._announced

    def end_turns(self, *made: Made) -> None:
        """Turns ended. Emits, in one batch, all that is complete now."""
        with self._guard:
            self._made.update({each.step: each for each in made})
            # Said first: what is released after it does not hold a mirror up.
            self._emit_ends(self._judge_turns(final=False))
            self._settle_steps()

    def mark_fused(self, steps: tuple[str, ...], seconds: float) -> None:
        """One job, of the last of ``steps``, executed them all."""
        with self._guard:
            for step in steps[:-1]:
                made = self._made[step]
                if made.state == "defined":
                    others = tuple(other for other in steps if other != step)
                    self._made[step] = replace(made, state="success", seconds=seconds, fused=others)

    def finish(self) -> bool:
        """The application ends: say what is left to say; whether all is ``ok``."""
        with self._guard:
            self._emit_ends(self._judge_turns(final=True))
        return self.ok

    @property
    def ok(self) -> bool:
        """Whether every target ended well, and so did all that had to be made again for them."""
        bad = any(made.state in BAD for made in self._made.values())
        return not bad and all(self._announced.get(step, "failed") not in BAD for step in self._targets)

    def _emit_ends(self, verdicts: Mapping[str, tuple[StepState, str]]) -> None:
        events: list[Event] = []
        for spec in self._lineage.specs:
            if spec.id in verdicts and spec.id not in self._announced:
                state, reason = verdicts[spec.id]
                # In the manifest's order, those above first: nobody hears of a step before what it read.
                self._announced[spec.id] = state
                if spec.id in self._targets:
                    events.append(make_done_event(self._made[spec.id], state, reason))
        if events:
            self._on_event(*events)

    def _judge_turns(self, final: bool) -> Mapping[str, tuple[StepState, str]]:
        """State and reason of each step that is complete, from the last to the first."""
        found: dict[str, tuple[StepState, str]] = {}
        for spec in reversed(self._lineage.specs):
            made = self._made.get(spec.id)
            if made is not None and (verdict := self._judge_turn(made, found, final)):
                found[spec.id] = verdict
        return found

    def _judge_turn(
        self, made: Made, below: Mapping[str, tuple[StepState, str]], final: bool
    ) -> tuple[StepState, str] | None:
        readers = self._list_fed_readers(made.step)
        states = {reader: below[reader][0] for reader in readers if reader in below}
        bad = next((reader for reader, state in states.items() if state in BAD), None)
        whole = len(states) == len(set(readers)) and bad is None
        if made.state == "success":
            return ("success", made.reason) if whole or final else None
        if made.state != "defined":
            return made.state, made.reason
        # No job of a reader ever executed it.
        if whole and set(states.values()) <= {"skipped", "pruned"}:
            return "pruned", "all that read it were skipped"
        if whole:
            return "success", made.reason
        return ("upstream_failed", f"not completed: {bad or 'a step'} that reads it failed") if final else None

    def _list_fed_readers(self, step: str) -> tuple[str, ...]:
        """Steps that read what it handed over, or what another step of its repeat block did."""
        # Steps of a block end together, so each waits for the readers of all.
        mates = [self._made[mate] for mate in self._lineage.get_unit(step) if mate in self._made]
        return tuple(reader for mate in mates for reader in self._lineage.list_readers(mate.step, mate.passed_on))

    def _settle_steps(self) -> None:
        for spec in reversed(self._lineage.specs):
            if spec.id not in self._settled and self._is_settled(spec.id):
                self._settled.add(spec.id)
                self._on_settled(spec.id)

    def _is_settled(self, step: str) -> bool:
        """Whether nobody will read its rows any more, lazily or not."""
        readers = self._lineage.list_readers(step, self._lineage.list_requested(step))
        return step in self._made and all(self._has_read(reader) for reader in readers)

    def _has_read(self, reader: str) -> bool:
        made = self._made.get(reader)
        return made is not None and (made.state != "defined" or reader in self._settled)


def make_done_event(made: Made, state: StepState, reason: str) -> StepDone:
    """The event about a step's end."""
    commits = made.commits
    first = next((commits[name] for name in sorted(commits)), None)
    return StepDone(
        step=made.step,
        state=state,
        rows=made.rows,
        bytes=made.bytes,
        seconds=round(made.seconds, 3) if made.seconds is not None else None,
        fused=made.fused,
        datasets={name: each.path for name, each in sorted(commits.items()) if each.table is None},
        sizes={name: each.bytes for name, each in sorted(commits.items()) if each.bytes is not None},
        assumed=made.assumed,
        left_out=made.left_out,
        path=first.path if first else None,
        wrote=next((each.table for _, each in sorted(commits.items()) if each.table is not None), None),
        value=made.value,
        metrics=made.metrics,
        failure=made.failure,
        reason=reason,
    )
