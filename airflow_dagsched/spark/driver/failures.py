"""What went wrong, whose step it was, and what to do about it."""

from __future__ import annotations

import concurrent
import os
import re
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import pyspark

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.events import Failure, FailureKind
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.spark.outputs.commits import WriteRefused
from airflow_dagsched.spark.steps.call_step import StepFault
from airflow_dagsched.spark.telling.progress_watch import OURS, PY4J

TEXT_CHARS = 20_000
"""Most of an exception's own text that is looked at. What is shown of it is cut once it is masked, see ``masked``."""

JAVA_IS_GONE = "what went wrong is not known, since Java was gone when it was asked"
"""In place of the text of a Java exception."""

KINDS: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
    (
        "out_of_memory",
        re.compile(
            # First in the list: an executor that was killed for its memory is lost as well.
            r"OutOfMemoryError|Java heap space|GC overhead limit exceeded|Cannot allocate memory"
            # 137, 143: SIGKILL and SIGTERM, as YARN and Kubernetes end what takes too much; 52: ``SparkExitCode.OOM``.
            r"|Container killed (?:by YARN|on request)|exit(?:ed with)? (?:code|status):? ?(?:137|52|143)\b|OOMKilled"
            r"|Unable to acquire \d+ bytes of memory|UNABLE_TO_ACQUIRE_MEMORY|\bMemoryError\b"
        ),
    ),
    (
        "lost_executor",
        re.compile(
            r"ExecutorLostFailure|Executor heartbeat timed out|Remote RPC client disassociated|worker lost"
            r"|MetadataFetchFailedException|FetchFailed|Python worker exited unexpectedly|ExecutorDeadException"
        ),
    ),
    (
        "lost_driver",
        re.compile(
            r"Py4JNetworkError|Answer from Java side is empty|SparkContext was shut down|a stopped SparkContext"
            rf'|SparkContext\.dagScheduler\(\)" is null|{re.escape(JAVA_IS_GONE)}'
            # Py4J's words for an answer that is empty; behind any other error of Java it has its trace.
            r"|\APy4JError: An error occurred while calling \S+\Z"
        ),
    ),
)
"""The first kind whose pattern is in an exception's text; the author's fault if none is."""

REMEDIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"PATH_NOT_FOUND\] Path does not exist: (?P<what>\S+?)\.?(?: SQLSTATE.*)?$", re.MULTILINE),
        "input path is missing: {what} (check the path, or let the step wait for whoever writes it)",
    ),
    (
        re.compile(r"TABLE_OR_VIEW_NOT_FOUND\] The table or view (?P<what>\S+) cannot be found"),
        "table or view {what} is not there (check its name, or that the step is called with the input of that name)",
    ),
    (
        re.compile(r"(?P<what>No space left on device)"),
        "the disk is full: {what} (free space on the work dir's disk and on spark.local.dir, or point them elsewhere)",
    ),
)
"""Known trouble: how it shows, and the one line about it."""

# A Python frame, or Spark 4's line of the DataFrame call that made a failing expression.
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)|was called from\s+(?P<file2>[^\s:]+):(?P<line2>\d+)')
# Where they are, not what they are called: a checkout, with an author's files in it, may have the name of a package.
_NOT_THE_AUTHORS = (OURS, PY4J, *(f"{Path(str(package.__file__)).parent}{os.sep}" for package in (pyspark, concurrent)))


def describe_failure(error: BaseException, text: str, step: str) -> Failure:
    """The failure that ``error``, raised in the turn of ``step``, is.

    :param text: as ``read_text`` gives it, once for all who look at it: Java may be asked for it, and go meanwhile.
    """
    shown = "" if isinstance(error, DagschedError) else format_traceback(error, text)
    return Failure(classify_error(error, text), make_message(error, text, step), shown)


def classify_error(error: BaseException, text: str) -> FailureKind:
    """See ``KINDS``. ``sys.exit`` and the like are the author's."""
    if isinstance(error, MemoryError):
        return "out_of_memory"
    if isinstance(error, WriteRefused):
        return "refused"
    named = f"{type(error).__name__}: {text}"
    kind = next((kind for kind, pattern in KINDS if pattern.search(named)), None)
    return kind or ("lost_driver" if _has_met_dead_java(error) else "author")


def read_text(error: BaseException) -> str:
    """The exception's own text, or why there is none."""
    try:
        return str(error)
    # Py4J asks Java for the text of Java's exceptions; what an author's exception does here is the author's.
    except Exception as silent:  # noqa: BLE001
        return JAVA_IS_GONE if _has_met_dead_java(silent) else f"(its text can't be had: {type(silent).__name__})"


def _has_met_dead_java(error: BaseException | None) -> bool:
    """Whether the error, or one that it came of, says that Java is gone.

    PySpark asks Java what its exception says; where Java stopped meanwhile, as it does when memory runs out, what is
    raised in the end is that nobody answers: ``ConnectionRefusedError``, as of any server, but in Py4J's own code.
    """
    while error is not None:
        if type(error).__name__ == "Py4JNetworkError" or (isinstance(error, OSError) and _is_of_py4j(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_of_py4j(error: BaseException) -> bool:
    frames = _list_frames(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(PY4J)


def make_message(error: BaseException, text: str, step: str) -> str:
    """One line: what to do where that is known, else the exception's own first line."""
    text = text[:TEXT_CHARS]
    for pattern, remedy in REMEDIES:
        if match := pattern.search(text):
            return remedy.format(what=match["what"])
    if isinstance(error, SystemExit):
        return f"the step called sys.exit({error.code!r}): a step ends by returning"
    if isinstance(error, DagschedError):
        return f"step {step!r} {text}" if isinstance(error, StepFault) else text
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {_pick_telling_line(lines)}"


def _pick_telling_line(lines: list[str]) -> str:
    """The line that says most: of a Python worker's traceback the last, else the first."""
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        return next((line for line in reversed(lines) if not line.startswith((" ", "\t"))), lines[-1])
    return lines[0] if lines else ""


def format_traceback(error: BaseException, text: str) -> str:
    """The author's frames and the exception; neither ours nor Spark's."""
    frames = [frame for frame in _list_frames(error.__traceback__) if not frame.filename.startswith(_NOT_THE_AUTHORS)]
    listed = "".join(traceback.format_list(traceback.StackSummary.from_list(frames)))
    head = f"Traceback (most recent call last):\n{listed}" if listed else ""
    return f"{head}{type(error).__name__}: {text[:TEXT_CHARS]}"


def _list_frames(where: TracebackType | None) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(where))


def find_culprit(text: str, candidates: Iterable[StepSpec]) -> str | None:
    """The step whose code an error came from, by the places in its text: the innermost that is a candidate's.

    Such a place is a frame of a function Spark called back, or the line that made a failing expression.
    """
    places = [
        (match["file"] or match["file2"], int(match["line"] or match["line2"])) for match in _FRAME.finditer(text)
    ]
    known = [(spec.id, spec.location) for spec in candidates if spec.location is not None]
    found = [
        step for file, line in places for step, (where, first, last) in known if file == where and first <= line <= last
    ]
    # The last place is the innermost.
    return found[-1] if found else None
