"""One step's turn: call it, then do with its rows what its readers need."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.blame import blame_step, describe_end
from airflow_dagsched.spark.driver.fused import find_executed, order_steps, widen_session
from airflow_dagsched.spark.driver.keep_used import find_deferred, keep_inputs, keep_lazy_whole, keep_whole
from airflow_dagsched.spark.driver.look_ahead import StepCall
from airflow_dagsched.spark.driver.materialise import Part, materialise_part, plan_parts
from airflow_dagsched.spark.driver.stored_reads import MoreAsked
from airflow_dagsched.spark.session.capture_output import end_lines
from airflow_dagsched.spark.session.current import limit_reads, watch_actions, work_for
from airflow_dagsched.spark.session.plan_markers import count_marks
from airflow_dagsched.spark.session.sessions import enter_session, open_session
from airflow_dagsched.spark.steps.call_step import Answer, call_step, check_answer
from airflow_dagsched.spark.steps.deferred import Deferred, RowsFailed
from airflow_dagsched.spark.steps.ledger import Made
from airflow_dagsched.spark.steps.planned import Planned


def run_step(app: Application, step: str) -> None:
    """The step's whole turn, its end on the ledger. Raises nothing of the author's."""
    call = app.calls.begin_turn(step)
    # Called before, and without a job of its own: that was its turn.
    if call.over.is_set():
        app.stored.raise_if_asked()
        return
    if call.turn is None:
        made = app.find_early_end(step)
        if made is not None:
            call.return_plans(())
            app.ledger.end_turns(made)
            return
        call.turn = Turn(app, step, call)
    _finish_turn(call.turn)


def call_early(app: Application, call: StepCall) -> None:
    """Call the step's function before its turn; of one that has no job that was the whole turn."""
    try:
        if app.find_early_end(call.step) is None:
            call.turn = turn = Turn(app, call.step, call)
            with work_for(call.step, turn.session):
                turn.call()
    finally:
        # Whatever became of it: somebody waits.
        call.return_plans(call.planned)
    if call.turn is not None and call.has_no_job:
        # Who has the step's turn next sees it.
        with suppress(MoreAsked):
            _finish_turn(call.turn)


def _finish_turn(turn: Turn) -> None:
    app, step = turn.app, turn.spec.id
    with work_for(step, turn.session):
        try:
            turn.run()
        except BaseException as error:  # noqa: BLE001 - sys.exit() of a step ends the step
            # No failure of the step: it is to be called again.
            app.stored.raise_if_asked(error)
            turn.fail(error)
        finally:
            turn.step_call.over.set()
            # A line that the author's code only began is one.
            end_lines()
            app.give_up(step)


class Turn:
    """What a step did so far in its turn."""

    def __init__(self, app: Application, step: str, call: StepCall) -> None:
        self.app = app
        self.spec = app.lineage.by_id[step]
        self.session = open_session(app.spark, app.manifest.session.get(step, {}))
        self.step_call = call
        self.executed: set[str] = set()
        """Lazy steps above that jobs of this turn executed, or are about to."""
        self.answer: Answer | None = None
        self.error: BaseException | None = None
        """Of its function."""
        self.parts: dict[str, Part] = {}
        self.seconds = 0.0
        self.kept_s = 0.0
        """Seconds that went into keeping what is read here and elsewhere: those are not this step's."""

    def call(self) -> None:
        """Call the step's function; what it raises is kept for its turn."""
        began = time.monotonic()
        self.app.report_running(self.spec.id)
        try:
            answer = self._call_function()
            self.step_call.return_plans(plan_parts(self.app, self.spec.id, answer.frames))
            self.answer = answer
        except BaseException as error:  # noqa: BLE001 - sys.exit() of a step ends the step
            self.error = error
        finally:
            end_lines()
            self.step_call.return_plans(self.step_call.planned)
            self.seconds += time.monotonic() - began

    def run(self) -> None:
        """Call the step, if that was not done, run its jobs, put its end on the ledger."""
        if self.answer is None and self.error is None:
            self.call()
        # Whoever asked for more in this function, its author may have handled what was raised.
        self.app.stored.raise_if_asked()
        if self.answer is None:
            assert self.error is not None
            raise self.error
        began, step = time.monotonic(), self.spec.id
        self._materialise_frames(self.step_call.planned)
        self.seconds += time.monotonic() - began
        if not self.answer.frames:
            self.app.shelf.put_ready(Output(step), self.answer.value)
        made = self.make_entry()
        if made.fused:
            self.app.ledger.mark_fused((*made.fused, step), self.seconds - self.kept_s)
        self.app.record_end(made)
        self.app.ledger.end_turns(made)

    def make_entry(self) -> Made:
        """The turn's entry for the ledger, as far as it went."""
        assert self.answer is not None, f"{self.spec.id} has returned nothing"
        fused = order_steps(self.app, self.executed - {self.spec.id})
        made = make_entry(self.spec.id, self.parts, self.answer, self.seconds - self.kept_s, fused)
        # Called all the same: a step below needs its columns. Rows it has none.
        return replace(made, state="pruned", reason=self.spec.pruned) if self.spec.pruned else made

    def _call_function(self) -> Answer:
        enter_session(self.session, self.spec.id, self.spec.id)
        call = self.app.payload.get_call(self.spec.id)
        with watch_actions(self._notice_action), limit_reads(self.spec.needed):
            returned = call_step(call, self.session, partial(self.app.read_routed, self.spec.id), self.app.get_context)
        return check_answer(returned, self.app.lineage.list_requested(self.spec.id), self.spec.writes is not None)

    def _materialise_frames(self, planned: tuple[Planned, ...]) -> None:
        """The jobs of the datasets, one after the other; the lazy ones last, they have none."""
        began = time.monotonic()
        enter_session(self.session, self.spec.id, self.spec.id)
        ready = keep_inputs(self.app, self.session, planned)
        self.kept_s += time.monotonic() - began
        # A lazy one last: what the jobs before it executed is known by then.
        for each in map(self._open_executed, sorted(ready, key=lambda each: not each.is_executed)):
            if each.is_executed:
                self.executed |= find_executed(self.app, each.marks)
                widen_session(self.app, self.session, self.spec.id, self.executed)
                enter_session(self.session, self.spec.id, self._describe_job())
            self.parts[each.output.name] = materialise_part(self.app, self.session, each)

    def _open_executed(self, each: Planned) -> Planned:
        return replace(each, df=self.app.open_plan(each.df)) if each.is_executed else each

    def _notice_action(self, df: DataFrame | None) -> None:
        """The author is about to execute ``df`` (None: we cannot tell what): once, and not again later."""
        shelf = self.app.shelf
        self.app.stored.note_action(self.spec.id, df)
        # Without a plan to look at, any input may be in it.
        inputs = [each for each in self.spec.inputs if each in shelf]
        taken = (shelf.take_rows(each, self.session) for each in inputs)
        frames = [df] if df is not None else [each for each in taken if isinstance(each, DataFrame)]
        began = time.monotonic()
        self._keep_whole(find_deferred(self.app, frames, self.session))
        if df is not None:
            marks = count_marks(df, self.session)
            self.executed |= find_executed(self.app, marks)
            owners = {shelf.find_owner(mark) for mark in marks}
            inputs = [each for each in inputs if each in owners]
        for each in inputs:
            keep_lazy_whole(self.app, each)
        self.kept_s += time.monotonic() - began

    def _keep_whole(self, read: tuple[Deferred, ...]) -> None:
        """Keep these, which an action of the author's is about to read, as they stand in its plan."""
        for each in read:
            each.acted_on = True
        if read or not self.step_call.admitted.is_set():
            # Nobody waits for what it will return; and an action before its turn waits for that.
            self.step_call.act()
        for each in read:
            keep_whole(self.app, each)
        if read:
            enter_session(self.session, self.spec.id, self.spec.id)

    def _describe_job(self) -> str:
        fused = order_steps(self.app, self.executed - {self.spec.id})
        return f"{self.spec.id} (with {', '.join(fused)})" if fused else self.spec.id

    def add_kept(self, name: str, part: Part, seconds: float, fused: tuple[str, ...]) -> None:
        """The rows of an output were made, in the turn of the first that reads them."""
        self.parts[name] = part
        self.seconds += seconds
        self.executed |= {*fused}
        if fused:
            self.app.ledger.mark_fused((*fused, self.spec.id), seconds)
        self.app.ledger.end_turns(self.make_entry())

    def fail(self, error: BaseException) -> None:
        """Put the failure on the ledger, as that of the step whose code it came from."""
        step = self.spec.id
        if isinstance(error, RowsFailed):
            guilty, failure = error.step, error.failure
        else:
            guilty, failure = describe_end(self.app, step, error)
        self.app.ledger.end_turns(*blame_step(self.app, step, guilty, failure))


def make_entry(
    step: str, parts: Mapping[str, Part], answer: Answer, seconds: float, fused: tuple[str, ...] = ()
) -> Made:
    """The turn's entry for the ledger."""
    lazy = any(part.mode in ("lazy", "defer") for part in parts.values())
    counted = {name: part.rows for name, part in parts.items() if part.rows is not None}
    commits = {name: part.committed for name, part in parts.items() if part.committed is not None}
    sizes = [each.bytes for each in commits.values() if each.bytes is not None]
    several = len(parts) > 1
    return Made(
        step,
        "defined" if lazy else "success",
        passed_on=tuple(name for name, part in parts.items() if part.mode in ("lazy", "defer", "keep")),
        rows=sum(counted.values()) if parts and len(counted) == len(parts) else None,
        bytes=sum(sizes) if commits and len(sizes) == len(commits) else None,
        seconds=None if lazy and len(parts) == 1 else seconds,
        fused=fused,
        commits=commits,
        assumed={name: rows * parts[name].width for name, rows in counted.items() if name not in commits},
        left_out={name: part.left_out for name, part in parts.items() if part.left_out is not None},
        value=answer.value,
        metrics={
            **({f"rows_{name}": float(rows) for name, rows in counted.items()} if several else {}),
            **{
                f"{what}_{name}" if several else what: float(number)
                for name, part in parts.items()
                for what, number in part.list_metrics().items()
            },
        },
    )
