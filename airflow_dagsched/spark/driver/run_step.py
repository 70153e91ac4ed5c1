"""One step's turn: call it, then do with its rows what its readers need."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import Failure
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.failures import describe_failure, find_culprit, read_text
from airflow_dagsched.spark.driver.materialise import Part, Planned, keep_shared, materialise_part, plan_parts
from airflow_dagsched.spark.session.capture_output import end_lines
from airflow_dagsched.spark.session.current import limit_reads, watch_actions, work_for
from airflow_dagsched.spark.session.plan_markers import count_marks
from airflow_dagsched.spark.session.sessions import enter_session, open_session, set_session
from airflow_dagsched.spark.steps.call_step import Answer, call_step, check_answer
from airflow_dagsched.spark.steps.ledger import Made


def run_step(app: Application, step: str) -> None:
    """The step's whole turn, its end on the ledger. Raises nothing of the author's."""
    made = app.find_early_end(step)
    if made is not None:
        app.ledger.end_turns(made)
        return
    turn = Turn(app, step)
    with work_for(step, turn.session):
        try:
            turn.run()
        except BaseException as error:  # noqa: BLE001 - sys.exit() of a step ends the step
            turn.fail(error)
        finally:
            # A line that the author's code only began is one.
            end_lines()
            app.give_up(step)


class Turn:
    """What a step did so far in its turn."""

    def __init__(self, app: Application, step: str) -> None:
        self.app = app
        self.spec = app.lineage.by_id[step]
        self.session = open_session(app.spark, app.manifest.session.get(step, {}))
        self.executed: set[str] = set()
        """Lazy steps above that jobs of this turn executed, or are about to."""

    def run(self) -> None:
        """Call the step, run its jobs, put its end on the ledger."""
        began = time.monotonic()
        step = self.spec.id
        self.app.report_running(step)
        answer = self._call_step()
        planned = plan_parts(self.app, step, answer.frames)
        keep_shared(self.app, self.session, planned)
        parts = self._materialise_frames(planned)
        seconds = time.monotonic() - began
        if not answer.frames:
            self.app.shelf.put_ready(Output(step), answer.value)
        fused = self._list_fused()
        if fused:
            self.app.ledger.mark_fused((*fused, step), seconds)
        made = make_entry(step, parts, answer, seconds, fused)
        pruned = self.spec.pruned
        # Called all the same: a step below needs its columns. Rows it has none.
        if pruned:
            made = replace(made, state="pruned", reason=pruned)
        self.app.record_end(made)
        self.app.ledger.end_turns(made)

    def _call_step(self) -> Answer:
        enter_session(self.session, self.spec.id, self.spec.id)
        call = self.app.payload.get_call(self.spec.id)
        with watch_actions(self._notice_action), limit_reads(self.spec.needed):
            returned = call_step(call, self.session, partial(self.app.read_routed, self.spec.id), self.app.get_context)
        return check_answer(returned, self.app.lineage.list_requested(self.spec.id), self.spec.writes is not None)

    def _materialise_frames(self, planned: tuple[Planned, ...]) -> Mapping[str, Part]:
        """The jobs of the datasets, one after the other; the lazy ones last, they have none."""
        parts = {}
        # A lazy one last: what the jobs before it executed is known by then.
        for each in sorted(planned, key=lambda each: each.mode == "lazy"):
            if each.mode != "lazy":
                self._note_executed(each.df)
                self._widen_session()
                enter_session(self.session, self.spec.id, self._describe_job())
            parts[each.output.name] = materialise_part(self.app, self.session, each)
        return parts

    def _notice_action(self, df: DataFrame | None) -> None:
        """The author is about to execute ``df`` (None: we cannot tell what): once, and not again later."""
        # Without a plan to look at, any input may be in it.
        inputs = [each for each in self.spec.inputs if each in self.app.shelf]
        if df is not None:
            owners = {self.app.shelf.find_owner(mark) for mark in count_marks(df, self.session)}
            self.executed |= {owner.step for owner in owners if owner is not None}
            inputs = [each for each in inputs if each in owners]
        for each in inputs:
            self.app.shelf.keep_lazy(each)

    def _note_executed(self, df: DataFrame) -> None:
        owners = (self.app.shelf.find_owner(mark) for mark in count_marks(df, self.session))
        self.executed |= {owner.step for owner in owners if owner is not None}

    def _widen_session(self) -> None:
        """Shuffles of the lazy steps above are in this step's job: all are as parallel as the widest of them."""
        told, instances = self.app.manifest.session, self.app.manifest.instances
        # Where the author says nothing of the step whose job it is, Spark's own way stays.
        if self.spec.id in told and self.executed:
            # In the manifest's order: of equally wide ones always the same.
            known = [step for step in (*self._list_fused(), self.spec.id) if step in told]
            set_session(self.session, told[max(known, key=lambda step: instances.get(step, 1))])

    def _list_fused(self) -> tuple[str, ...]:
        return tuple(spec.id for spec in self.app.lineage.specs if spec.id in self.executed and spec.id != self.spec.id)

    def _describe_job(self) -> str:
        fused = self._list_fused()
        return f"{self.spec.id} (with {', '.join(fused)})" if fused else self.spec.id

    def fail(self, error: BaseException) -> None:
        """Put the failure on the ledger, as that of the step whose code it came from."""
        app, step, text = self.app, self.spec.id, read_text(error)
        failure = describe_failure(error, text, step)
        above = [app.lineage.by_id[up] for up in app.lineage.above[step] if not app.ledger.is_announced(up)]
        guilty = find_culprit(text, [*above, self.spec]) or step
        app.ledger.end_turns(*_blame_step(app, step, guilty, failure))


def _blame_step(app: Application, step: str, guilty: str, failure: Failure) -> list[Made]:
    """The guilty step failed, with it all on the way from there to the step whose job it was."""
    if guilty == step:
        return [Made(step, "failed", failure=failure)]
    above = app.lineage.above
    between = [up for up in above[step] if guilty in above[up] and app.ledger.is_defined(up)]
    reason = f"{guilty!r} failed in the job of {step!r}"
    return [
        Made(guilty, "failed", failure=failure),
        *(Made(each, "upstream_failed", reason=reason) for each in [*between, step]),
    ]


def make_entry(
    step: str, parts: Mapping[str, Part], answer: Answer, seconds: float, fused: tuple[str, ...] = ()
) -> Made:
    """The turn's entry for the ledger."""
    lazy = any(part.mode == "lazy" for part in parts.values())
    counted = {name: part.rows for name, part in parts.items() if part.rows is not None}
    commits = {name: part.committed for name, part in parts.items() if part.committed is not None}
    sizes = [each.bytes for each in commits.values() if each.bytes is not None]
    several = len(parts) > 1
    return Made(
        step,
        "defined" if lazy else "success",
        passed_on=tuple(name for name, part in parts.items() if part.mode in ("lazy", "keep")),
        rows=sum(counted.values()) if parts and len(counted) == len(parts) else None,
        bytes=sum(sizes) if commits and len(sizes) == len(commits) else None,
        seconds=None if lazy and len(parts) == 1 else seconds,
        fused=fused,
        commits=commits,
        assumed={name: rows * parts[name].width for name, rows in counted.items() if name not in commits},
        value=answer.value,
        metrics={f"rows_{name}": float(rows) for name, rows in counted.items()} if several else {},
    )
