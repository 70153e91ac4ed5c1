"""The feed: what a launch task says about its steps, and what a mirror concludes from it.

The launch task folds the driver's events into one value and pushes what of it is needed (``bounds``) on every change.
A mirror reads the launch task's own state first, then the feed, and looks its verdict up in a table: a
feed may be left over from an earlier try, a state never is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from airflow_dagsched.launch.protocol.events import SOME_ROWS, Event, MadeAgain, Stalled, StepDone, StepLog, StepRunning
from airflow_dagsched.launch.protocol.identity import NO_TRY, TryId

FEED_KEY = "dagsched"
"""XCom key of the feed, on the launch task."""
LOG_LINES = 100
"""Lines of a step's output kept for its mirror; the launch task's own log has them all."""
LINE_CHARS = 500


def name_returned_key(step: str) -> str:
    """XCom key of what a step returned, on the launch task: in ``dag.test()`` a mirror's start wipes its own."""
    return f"{FEED_KEY}.{step}"


def shorten_text(text: str, chars: int) -> str:
    """At most so many characters of ``text``, and how many are missing."""
    return text if len(text) <= chars else f"{text[:chars]}... ({len(text) - chars} more characters)"


@dataclass(frozen=True, slots=True)
class StepLines:
    """The last lines a step printed; ``first`` is the number of the first one kept."""

    first: int = 0
    lines: tuple[str, ...] = ()
    added_s: float = 0.0
    """When the last one came, or its step ended; of some clock, and not pushed."""

    def add(self, lines: Iterable[str], now_s: float = 0.0) -> StepLines:
        """These and ``lines``, each cut to ``LINE_CHARS``; of all the last ``LOG_LINES``."""
        merged = (*self.lines, *(shorten_text(line, LINE_CHARS) for line in lines))
        dropped = max(0, len(merged) - LOG_LINES)
        return StepLines(self.first + dropped, merged[dropped:], now_s)

    def since(self, seen: int) -> tuple[str, ...]:
        """Lines from number ``seen`` on, as far as they are still here."""
        # A reader that comes late goes on with the first line that is left.
        return self.lines[max(0, seen - self.first) :]


@dataclass(frozen=True, slots=True)
class Feed:
    """State of all steps of one launch try. ``steps`` keeps the order in which they ended."""

    nonce: str
    """Names the try: a feed seen before the try began is stale."""
    try_id: TryId = NO_TRY
    """Of two feeds, the one of the greater try counts, whichever was pushed last."""
    final: bool = False
    """The try says no more: either its task is just ending, or another try has not wiped the feed yet."""
    running: tuple[str, ...] = ()
    steps: Mapping[str, StepDone] = field(default_factory=dict)
    logs: Mapping[str, StepLines] = field(default_factory=dict)
    pruned: Literal["success", "skipped"] = "success"
    """How mirrors of pruned steps end."""
    began: float = 0.0
    """When the try began, by the clock of Airflow's server (see ``clocks``). Seconds since 1970; 0: it does not say."""

    def add(self, events: Iterable[Event], now_s: float = 0.0) -> Feed:
        """This feed after ``events``; the same object where they change nothing a mirror shows."""
        feed = self
        for event in events:
            feed = feed._apply_event(event, now_s)
        return feed

    def _apply_event(self, event: Event, now_s: float) -> Feed:
        match event:
            case StepRunning(step):
                return replace(self, running=(*self.running, step))
            case StepLog(step, lines):
                return self._add_lines(step, lines, now_s)
            case Stalled(step) | MadeAgain(step):
                return self._add_lines(step, (event.line,), now_s)
            case StepDone(step):
                left = tuple(name for name in self.running if name != step)
                ended = replace(self, running=left, steps={**self.steps, step: event})
                # Its lines are fresh once more: its mirror takes the last of them as it ends.
                return ended._add_lines(step, (), now_s) if step in self.logs else ended
            case _:
                return self

    def _add_lines(self, step: str, lines: Iterable[str], now_s: float) -> Feed:
        return replace(self, logs={**self.logs, step: self.logs.get(step, StepLines()).add(lines, now_s)})


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to conclude yet."""


@dataclass(frozen=True, slots=True)
class End:
    """The mirror ends now, in an Airflow state."""

    state: Literal["success", "failed", "skipped"]
    reason: str = ""
    done: StepDone | None = None


Verdict = Wait | End

GREEN = frozenset({"success", "reused", "pruned"})
FINISHED = frozenset({"success", "failed", "upstream_failed", "skipped", "removed"})
LIVE = frozenset({"running", "up_for_retry", "up_for_reschedule", "deferred"})
"""The launch task was not cleared since its last try began. (``restarting`` says that it was, while it ran.)"""
NOT_BEGUN = frozenset({None, "", "scheduled", "queued", "restarting"})
"""States of a task that has not begun, or was cleared while it ran and is to begin again."""
TOLERANCE_S = 2.0
"""How much later than a try of the launch task its mirror may seem to be made. See ``is_of_its_round``."""


def is_of_its_round(feed: Feed, made: float) -> bool:
    """Whether the try that says ``feed`` began after its mirror was made, that is, after the last clear of the mirror.

    ::

        launch   made ── begins ─────────────────┐ its feed is not believed     made ── begins ──► its feed is
        mirror   made ───────────────────────────┴ cleared: made anew ────────────────────────►

    A clear makes launch task and mirrors one after another, in one transaction; the try begins when that is over. Both
    moments are of the server's clock, whatever the worker's shows; ``TOLERANCE_S`` covers that the server tells the
    time in whole seconds, that API servers and scheduler have a clock each, and, where a worker can't ask for the time,
    what a clear takes (milliseconds a task). A try that a clear meets in its first ``TOLERANCE_S`` could be believed by
    mistake, but it has no step done by then, its task is ``restarting``, and it tells nothing once it knows (see
    ``Standing``). Of a mirror cleared alone in that time the step runs after the clear.
    """
    return feed.began + TOLERANCE_S >= made


def has_ended_well(done: StepDone) -> bool:
    """Whether nobody need run the step any more."""
    return done.state in GREEN or done.state == "skipped"


def decide_verdict(launch_state: str | None, feed: Feed | None, step: str, made: float, launch_id: str) -> Verdict:
    """What the mirror of ``step`` does, by the state of its launch task and the feed of the latest try.

    =========================== ===================== ==========================================
    launch task                 feed says             the mirror
    =========================== ===================== ==========================================
    not started, restarting     anything              waits (the feed is an earlier try's)
    running, up for retry       green                 ends green (of a pruned step: as the dataflow wants it)
    running, up for retry       skipped               ends skipped
    running, up for retry       failed, nothing       waits (a retry may mend it)
    running, up for retry       of another round      waits (the feed is not wiped yet)
    running                     final                 waits (it is an earlier try's, or the task is just ending)
    finished                    of another round      fails: the launch task must be cleared too
    finished                    green, skipped        ends so
    finished                    failed, nothing       fails with the reason
    skipped                     nothing               ends skipped
    =========================== ===================== ==========================================

    :param made: when the mirror's task instance was made, or made anew by a clear, in seconds since 1970.
    """
    done = feed.steps.get(step) if feed else None
    if launch_state in FINISHED:
        return _conclude_finished(str(launch_state), feed, done, made, launch_id)
    if feed is None or done is None or not _is_current(str(launch_state), feed, made):
        return Wait()
    return _conclude_done(done, feed) if has_ended_well(done) else Wait()


def decide_elsewhere(launch_state: str | None, feed: Feed | None, step: str, made: float) -> Verdict:
    """What the mirror of ``step`` does by a launch task that is not its own, and may have run it.

    Only a good end is an end there: what fails is run by the step's own launch task, whose word on it counts. And only
    of a try that certainly began after the mirror was made: unlike its own launch task, this one need not have been
    cleared with it, and may be at work on the step as it was before.
    """
    done = feed.steps.get(step) if feed else None
    if feed is None or done is None or feed.began < made or not has_ended_well(done):
        return Wait()
    believed = launch_state in FINISHED or _is_current(str(launch_state), feed, made)
    return _conclude_done(done, feed) if believed else Wait()


def _is_current(launch_state: str, feed: Feed, made: float) -> bool:
    """Whether a feed that is there while the launch task is at work can only be of this round."""
    if launch_state not in LIVE or not is_of_its_round(feed, made):
        return False
    # A final feed beside a running task is mostly an earlier try's: a worker wipes XComs only once it has parsed the
    # DAG file, some seconds after the task is running. Between two tries there is nothing newer.
    return not feed.final or launch_state == "up_for_retry"


def _conclude_finished(state: str, feed: Feed | None, done: StepDone | None, made: float, launch_id: str) -> Verdict:
    # Green here would be false: nothing has run since the mirror was cleared.
    if feed is not None and not is_of_its_round(feed, made):
        return End(
            "failed", f"cleared alone, nothing runs: clear {launch_id!r} with it (a step runs in its launch task)"
        )
    if feed is not None and done is not None:
        return _conclude_done(done, feed)
    if state == "skipped":
        return End("skipped", f"{launch_id!r} was skipped")
    return End("failed", f"{launch_id!r} ended as {state} before this step was done: see its log")


def _conclude_done(done: StepDone, feed: Feed) -> End:
    if done.state == "pruned":
        return End(feed.pruned, f"pruned: {done.reason}", done)
    if done.state in GREEN:
        return End("success", done.reason, done)
    if done.state == "skipped":
        return End("skipped", done.reason, done)
    message = done.failure.message if done.failure else done.reason
    return End("failed", message or done.state, done)


def list_xcoms(done: StepDone) -> dict[str, Any]:
    """What ordinary tasks downstream of the step read: its plain value, else where its rows are."""
    # Whoever reads such files himself would take some of the rows for all.
    partial = {path for path in done.datasets.values() if path.endswith(SOME_ROWS)}
    path = None if done.path in partial else done.path
    facts = {"path": path, "rows": done.rows, "seconds": done.seconds, "metrics": dict(done.metrics)}
    facts |= {"pruned": done.reason} if done.state == "pruned" else {}
    # The unnamed dataset's path is in the facts themselves.
    paths = {name: None if path in partial else path for name, path in done.datasets.items() if name}
    named = {name: {**facts, "path": path} for name, path in paths.items()}
    return {**named, "return_value": facts if done.value is None else done.value}
