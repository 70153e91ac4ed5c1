"""A repeat block: its steps in order, again and again, what one leaves fed back to another.

::

    iteration 1      2                3
    init ─> a ─> b ─(feedback)─> a ─> b ─(feedback)─> a ─> b ─> readers, commits

Each iteration is kept while the next one needs it, and is a leaf of the next one's plan: where a step reads rows twice,
plans would else double with each round. Every few iterations the rows are cut off from how they were made, too.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.manifest import Repeat
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.spark.driver.application import Application
from airflow_dagsched.spark.driver.failures import describe_failure, read_text
from airflow_dagsched.spark.driver.materialise import materialise_part, plan_parts
from airflow_dagsched.spark.driver.run_step import make_entry
from airflow_dagsched.spark.session.cache_filling import fill_cache
from airflow_dagsched.spark.session.capture_output import end_lines
from airflow_dagsched.spark.session.current import limit_reads, work_for
from airflow_dagsched.spark.session.dataframe_cache import Kept
from airflow_dagsched.spark.session.leaf_plan import make_leaf
from airflow_dagsched.spark.session.sessions import enter_session, open_session, rebind_frame
from airflow_dagsched.spark.steps.call_step import Answer, call_step, check_answer, route_rows
from airflow_dagsched.spark.steps.ledger import Made

CUT_EVERY = 4
"""Iterations between two cuts of the lineage."""


def run_block(app: Application, repeat: Repeat) -> None:
    """The whole block's turn; its steps end together."""
    early = {step: made for step in repeat.steps if (made := app.find_early_end(step)) is not None}
    if early:
        bad = next((made for made in early.values() if made.state != "reused"), None)
        app.ledger.end_turns(*(replace(bad, step=step) if bad else early[step] for step in repeat.steps))
        return
    block = Block(app, repeat)
    try:
        ended = block.run()
        for each in ended:
            app.record_end(each)
        app.ledger.end_turns(*ended)
    except BaseException as error:  # noqa: BLE001 - sys.exit() of a step ends the block
        app.stored.raise_if_asked(error)
        reason = f"{block.at!r}, of the same repeat block, failed"
        others = [Made(step, "upstream_failed", reason=reason) for step in repeat.steps if step != block.at]
        app.ledger.end_turns(
            Made(block.at, "failed", failure=describe_failure(error, read_text(error), block.at)), *others
        )
    finally:
        # Whatever its iterations kept.
        block.rows.close()
        for step in repeat.steps:
            app.give_up(step)


class Rounds:
    """The rows of the latest iteration, kept; those of the one before until it is complete."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._now: list[DataFrame] = []
        self._before: list[DataFrame] = []

    def keep_rows(self, df: DataFrame, cut: bool) -> DataFrame:
        """``df``, executed once and kept."""
        if cut:
            # Kept by the executors, without a plan to make it again: if one of them is lost, so is the block.
            return df.localCheckpoint()
        leaf = make_leaf(df)
        self._kept.keep_frame(leaf)
        self._now.append(leaf)
        # Executed now: the next iteration stands on it, and ``until`` may ask it anything.
        fill_cache(leaf)
        return leaf

    def turn_over(self) -> None:
        """An iteration is complete: nobody needs the one before."""
        for df in self._before:
            self._kept.release_frame(df)
        self._before, self._now = self._now, []

    def close(self) -> None:
        """The block has ended."""
        self.turn_over()
        self.turn_over()


class Block:
    """One repeat block while it runs."""

    def __init__(self, app: Application, repeat: Repeat) -> None:
        self.app = app
        self.repeat = repeat
        self.at = repeat.steps[0]
        """The step that is running, or ran last."""
        # Closed by ``run_block``, however the block ends.
        self.rows = Rounds(app.kept)
        self.sessions = {step: open_session(app.spark, app.manifest.session.get(step, {})) for step in repeat.steps}
        self.answers: dict[str, Answer] = {}
        self.seconds = dict.fromkeys(repeat.steps, 0.0)

    def run(self) -> tuple[Made, ...]:
        """Iterate, then do with the last rows what their readers need."""
        calls = {step: self.app.payload.get_call(step) for step in self.repeat.steps}
        for iteration in range(1, self.repeat.max_iterations + 1):
            for step in self.repeat.steps:
                self._call_step(step, self._feed_back(step, calls[step]) if iteration > 1 else calls[step], iteration)
            self.rows.turn_over()
            if self._is_enough():
                break
        return tuple(self._make_entry(step, iteration) for step in self.repeat.steps)

    def _feed_back(self, step: str, call: Call) -> Call:
        back = {}
        for parameter, source in self.repeat.feedback.items():
            owner, _, name = parameter.rpartition(".")
            if owner == step:
                back[name] = Output(source)
        return replace(call, kwargs={**call.kwargs, **back})

    def _call_step(self, step: str, call: Call, iteration: int) -> None:
        began, session = time.monotonic(), self.sessions[step]
        self.at = step
        if iteration == 1:
            self.app.report_running(step)
        with work_for(step, session):
            try:
                enter_session(session, step, f"{step}, iteration {iteration}")
                with limit_reads(self.app.lineage.by_id[step].needed):
                    returned = call_step(call, session, self._read_input, self.app.get_context)
                # Inside the loop nothing is asked for yet: what leaves the block is looked at after the last iteration.
                answer = check_answer(returned, (), table=False)
                cut = iteration % CUT_EVERY == 0
                frames = {name: self.rows.keep_rows(df, cut) for name, df in answer.frames.items()}
            finally:
                end_lines()
        self.answers[step] = replace(answer, frames=frames)
        self.seconds[step] += time.monotonic() - began

    def _read_input(self, output: Output, session: SparkSession) -> Any:
        """Of this iteration, else of the one before, else from outside the block."""
        answer = self.answers.get(output.step)
        if answer is None:
            return self.app.read_routed(self.at, output, session)
        df = answer.frames.get(output.name)
        routed = self.app.lineage.by_id[self.at].routed
        return route_rows(rebind_frame(df, session), routed, output) if df is not None else answer.value

    def _is_enough(self) -> bool:
        key = f"repeat:{self.repeat.id}"
        if key not in self.app.payload:
            return False
        until = self.app.payload.get_call(key).function
        assert until is not None
        session = self.sessions[self.at]
        with work_for(self.at, session):
            enter_session(session, self.at, f"until of {self.repeat.id}")
            return bool(
                until(**_pick_arguments(until, {step: self._read_last(step, session) for step in self.repeat.steps}))
            )

    def _read_last(self, step: str, session: SparkSession) -> Any:
        answer = self.answers[step]
        frames = {name: rebind_frame(df, session) for name, df in answer.frames.items()}
        return frames.get("", frames) if frames else answer.value

    def _make_entry(self, step: str, iterations: int) -> Made:
        app, answer, session = self.app, self.answers[step], self.sessions[step]
        self.at = step
        enter_session(session, step, step)
        check_answer(
            _rebuild_returned(answer), app.lineage.list_requested(step), app.lineage.by_id[step].writes is not None
        )
        parts = {
            each.output.name: materialise_part(app, session, each) for each in plan_parts(app, step, answer.frames)
        }
        if not answer.frames:
            app.shelf.put_ready(Output(step), answer.value)
        made = make_entry(step, parts, answer, self.seconds[step])
        return replace(made, metrics={**made.metrics, "iterations": float(iterations)})


def _rebuild_returned(answer: Answer) -> Any:
    return dict(answer.frames) if answer.frames else answer.value


def _pick_arguments(function: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``values`` that the function has parameters for; all if it takes any."""
    parameters = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return dict(values)
    return {name: value for name, value in values.items() if name in parameters}
