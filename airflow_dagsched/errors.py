"""One root, few leaves: what went wrong, with its evidence, and what to do about it.

Written out, not by ``dataclass``: to load and use that takes every command and parse longer than all of this file.
"""

from __future__ import annotations


class DagschedError(Exception):
    """Root of every error this package raises on purpose."""


class InvalidInput(DagschedError):
    """Something the author or caller wrote breaks a rule. Printed as one line.

    :param where: file, DAG or step the input came from.
    :param field: path of the offending field, e.g. ``steps[3].cores``; may be empty.
    :param rule: the rule, with the value that breaks it.
    """

    def __init__(self, where: str, field: str, rule: str) -> None:
        self.where, self.field, self.rule = where, field, rule

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.field, self.rule) if part)


class DoesNotFit(DagschedError):
    """Something is larger than what is there.

    :param worker: the one that comes nearest, where no worker has enough; empty: all there are have less together.
    """

    def __init__(
        self, what: str, dimension: str, needed: float, available: float, unit: str = "", worker: str = ""
    ) -> None:
        self.what, self.dimension, self.worker = what, dimension, worker
        self.needed, self.available, self.unit = needed, available, unit

    @property
    def amounts(self) -> str:
        """What is needed and what there is, and where."""
        unit, where = f" {self.unit}" if self.unit else "", f" on worker {self.worker!r}" if self.worker else ""
        return f"needed {self.needed:.10g}{unit}, available {self.available:.10g}{unit}{where}"

    def __str__(self) -> str:
        return f"{self.what} does not fit: {self.dimension} {self.amounts}"


class LaunchRefused(DagschedError):
    """A group cannot be launched as things are; the message says what to change.

    :param passing: whether a later try may find it otherwise, with nothing changed.
    """

    def __init__(self, group: str, reason: str, remedy: str, passing: bool = False) -> None:
        self.group, self.reason, self.remedy, self.passing = group, reason, remedy, passing

    def __str__(self) -> str:
        return f"{self.group}: {self.reason} ({self.remedy})"


class ClusterUnknown(DagschedError):
    """A cluster manager gave no answer that can be read.

    :param asked: address, or what was asked for.
    """

    def __init__(self, asked: str, reason: str) -> None:
        self.asked, self.reason = asked, reason

    def __str__(self) -> str:
        return f"{self.asked} gave no answer we can read: {self.reason}"
