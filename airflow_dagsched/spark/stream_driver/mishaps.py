"""What goes wrong outside of steps and batches: an epoch that can't be run ends, all else is tried again.

A program that runs for weeks meets disks that are full or away for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.launch.protocol.events import Failure, FailureKind
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.spark.driver.failures import classify_error, describe_failure, read_text
from airflow_dagsched.spark.driver.launch_secrets import Refused
from airflow_dagsched.switch.signs import Ended

log = logging.getLogger(__name__)

OK, FAILED, REFUSED, STOPPED = 0, 1, 2, 3
"""Exit codes of the program, and of the epochs in it."""


def choose_code(kind: FailureKind | None) -> int:
    """The exit code of an epoch that ran."""
    if kind is None:
        return OK
    return STOPPED if kind in ("refused", "lost_driver") else FAILED


def describe_end(error: Exception, masking: Masking, at: float) -> Ended:
    """What is told of an epoch that ``error`` ended outside of its steps and batches.

    :param at: seconds since 1970.
    """
    failure = describe_failure(error, read_text(error), "(the driver program)")
    kind = _find_kind(error, failure)
    is_refused = isinstance(error, (Refused, DagschedError))
    mask = masking.text
    code = REFUSED if is_refused else choose_code(kind)
    return Ended(code, kind, at, message=mask(failure.message), traceback=mask(failure.traceback))


def _find_kind(error: Exception, failure: Failure) -> FailureKind:
    if isinstance(error, (Refused, DagschedError)):
        return "refused"
    # No code of the author's runs here: a disk that is full or away is no fault of the graph's.
    return "lost_driver" if failure.kind == "author" and isinstance(error, OSError) else failure.kind


class Stuck(Exception):
    """A batch does not come back from an author's function: its thread ends with the program alone."""


@contextmanager
def survive(what: str) -> Iterator[None]:
    """Go on after an error, which is told: it is tried again at the next look. Raises it where Java is gone.

    :param what: was tried.
    """
    try:
        yield
    except Exception as error:
        if is_java_gone(error):
            raise
        log.warning("%s, trying again: %s", what, error)


def is_java_gone(error: Exception) -> bool:
    """Whether nothing can ever be run again in this program."""
    return classify_error(error, read_text(error)) == "lost_driver"
