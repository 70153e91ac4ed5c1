"""What all turns of one application share, and the questions they ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.protocol.events import Event, StepRunning
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.manifest import Manifest, StepSpec
from airflow_dagsched.launch.protocol.rules import decide_outcome
from airflow_dagsched.spark.driver.look_ahead import StepCall, StepCalls
from airflow_dagsched.spark.driver.read_plans import ReadPlans
from airflow_dagsched.spark.driver.stored_reads import StoredReads
from airflow_dagsched.spark.outputs.commits import Committed
from airflow_dagsched.spark.outputs.group_outputs import Outputs
from airflow_dagsched.spark.reuse.ends import End, Ends
from airflow_dagsched.spark.reuse.filing import Filing
from airflow_dagsched.spark.session.dataframe_cache import Kept
from airflow_dagsched.spark.steps.call_step import route_rows
from airflow_dagsched.spark.steps.ledger import Ledger, Made
from airflow_dagsched.spark.steps.lineage import Lineage
from airflow_dagsched.spark.steps.payload import Payload
from airflow_dagsched.spark.steps.step_results import Shelf


@dataclass(frozen=True)
class Application:
    """One run of a group in one Spark application."""

    spark: SparkSession
    manifest: Manifest
    interval: Interval
    lineage: Lineage
    payload: Payload
    emit: Callable[..., None]
    outputs: Outputs | None
    """None where nothing is committed."""
    fingerprints: Mapping[str, str]
    filing: Filing
    reused: Mapping[str, str]
    """Step -> why it need not run."""
    found: Callable[[Output, SparkSession], Any]
    """Rows, or a plain value, that were recorded before this application."""
    commits: Callable[[Output], Committed | None]
    """The commit that still is what the step would make."""
    end: Callable[[str], End | None]
    """How the step ended before in this run, if it left no rows and would do the same now."""
    ends: Ends | None
    """None where nothing is recorded."""
    kept: Kept
    shelf: Shelf
    ledger: Ledger
    call_early: Callable[[Application, StepCall], None]
    """Calls a step's function before its turn."""
    calls: StepCalls = field(default_factory=StepCalls)
    read_plans: ReadPlans = field(default_factory=ReadPlans)
    stored: StoredReads = field(default_factory=StoredReads)
    whole: frozenset[Output] = frozenset()
    """Datasets that are stored whole, whatever was read of them before."""
    records: Callable[[Output], Committed | None] = lambda _: None
    """The record of what ``found`` gives; None where that is no stored dataset."""

    def can_begin(self, step: str) -> bool:
        """Whether the step's function may be called: all above it is over, and it is no part of a loop."""
        spec = self.lineage.by_id[step]
        above = (up for up in self.lineage.list_above(spec) if up in self.lineage.by_id)
        return len(self.lineage.get_unit(step)) == 1 and not spec.repeat and all(map(self.ledger.has_ended, above))

    def find_early_end(self, step: str) -> Made | None:
        """How the step's turn goes without it being called; None if it must be."""
        spec = self.lineage.by_id[step]
        if step in self.manifest.targets:
            # Its own group's steps alone have a rule to be judged: others are made again for their rows.
            if spec.skipped_by:
                return Made(step, "skipped", reason=f"skipped by {spec.skipped_by!r}")
            inside = {up: self.ledger.get_state(up) for up in spec.upstream if self._has_ended_before(up, spec)}
            states = {**spec.outside, **inside}
            outcome = decide_outcome(spec.rule, tuple(states.values()))
            if outcome != "run":
                return Made(step, outcome, reason=_explain_outcome(spec.rule, states))
        if step in self.lineage.uncalled and step not in self.reused:
            return Made(step, "pruned", reason=spec.pruned)
        above = [each.step for each in spec.inputs if self._is_before(each.step, step)]
        lost = next((each for each in above if self._is_lost(each)), None)
        if lost is not None:
            return Made(step, "upstream_failed", reason=f"{lost!r}, which it reads, had to be made again and failed")
        return self._reuse_step(step) if step in self.reused else None

    def _has_ended_before(self, up: str, spec: StepSpec) -> bool:
        """Whether ``up`` is of this application and no part of the same loop, whose steps end together."""
        above = self.lineage.by_id.get(up)
        return above is not None and not (spec.repeat and above.repeat == spec.repeat)

    def _is_before(self, up: str, step: str) -> bool:
        """Whether ``up`` has its turn in this application, and a turn of its own."""
        return up in self.lineage.by_id and up not in self.lineage.get_unit(step)

    def _is_lost(self, up: str) -> bool:
        """Whether an earlier group's step was run again for its rows, in vain."""
        return up not in self.manifest.targets and self.ledger.get_state(up) not in ("success", "pruned")

    def _reuse_step(self, step: str) -> Made:
        spec = self.lineage.by_id[step]
        names = {*spec.store, *spec.share, *([""] if spec.writes is not None else [])}
        commits = {name: found for name in names if (found := self.commits(Output(step, name))) is not None}
        rows = [each.rows for each in commits.values()]
        # One unknown number makes the sum unknown.
        total = sum(each for each in rows if each is not None) if rows and None not in rows else None
        sizes = [each.bytes for each in commits.values() if each.bytes is not None]
        size = sum(sizes) if commits and len(sizes) == len(commits) else None
        end = self.end(step) if not commits else None
        if end is not None:
            return Made(step, "reused", rows=end.rows, value=end.value, metrics=end.metrics, reason=self.reused[step])
        return Made(step, "reused", rows=total, bytes=size, commits=commits, reason=self.reused[step])

    def record_end(self, made: Made) -> None:
        """Say for later tries that the step ended well, if no commit does; before anybody is told."""
        # Rows that are only handed over go with this application: a later try has to run the step for them.
        handed_over = made.passed_on and not self.lineage.by_id[made.step].force
        if self.ends is not None and made.state in ("defined", "success") and not made.commits and not handed_over:
            fingerprint = self.fingerprints[made.step]
            self.ends.record_end(made.step, fingerprint, made.value, made.rows, made.metrics)

    def give_up(self, step: str) -> None:
        """Let others write what the step, whose turn is over, did not."""
        if self.outputs is not None:
            for place in self.filing.list_lasting_places(self.lineage.by_id[step], self.outputs.get_output_key):
                self.outputs.keeper.give_up(*place)

    def report_running(self, step: str) -> None:
        """Say that the step's function is called now."""
        self.emit_for(step, StepRunning(step))

    def emit_for(self, step: str, *events: Event) -> None:
        """Emit, unless the step is another group's, made again for its rows."""
        if step in self.manifest.targets:
            self.emit(*events)

    def read_input(self, output: Output, session: SparkSession) -> Any:
        """What a step gets for an input: rows or a plain value of this application, else rows committed before."""
        return self.shelf.take_rows(output, session) if output in self.shelf else self.found(output, session)

    def read_routed(self, reader: str, output: Output, session: SparkSession) -> Any:
        """As ``read_input``, rows handed over as the author of step ``reader`` says."""
        rows = self._mark_stored(reader, output, self.read_input(output, session))
        return route_rows(rows, self.lineage.by_id[reader].routed, output)

    def _mark_stored(self, reader: str, output: Output, rows: Any) -> Any:
        """The rows of a stored dataset with the reader's mark; others as they are."""
        committed = self.shelf.find_record(output) if output in self.shelf else self.records(output)
        if committed is None or committed.table is not None or not isinstance(rows, DataFrame):
            return rows
        if self.manifest.keep_columns == "all" and not committed.whole:
            return rows
        marked = self.stored.mark_rows(reader, output, rows, committed)
        # Of what a loop reads in its rounds nobody keeps count.
        if self.lineage.by_id[reader].repeat:
            self.stored.note_all(reader, output)
        return marked

    def open_plan(self, df: DataFrame) -> DataFrame:
        """``df`` as it is executed, over the rows that are stored. Raises ``MoreAsked``."""
        return self.stored.open_plan(df, self.read_plans)

    def note_whole(self, df: DataFrame) -> None:
        """``df`` is about to be kept as it stands, for any plan. Raises ``MoreAsked``."""
        self.stored.note_whole(df, self.read_plans)

    def get_context(self, name: str, session: SparkSession) -> Any:
        """A context value. Raises ``KeyError`` where the run has none of that name."""
        if name == "spark":
            return session
        return self.interval if name == "interval" else self.manifest.context[name]


def _explain_outcome(rule: str, states: Mapping[str, str]) -> str:
    telling = [f"{name} is {state}" for name, state in sorted(states.items()) if state not in ("success", "reused")]
    return f"trigger rule {rule}: {', '.join(telling) or 'everything above succeeded'}"
