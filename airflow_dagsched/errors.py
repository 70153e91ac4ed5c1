"""One root, few leaves: what went wrong, with its evidence, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


class DagschedError(Exception):
    """Root of every error this package raises on purpose."""


# Compared and shown as exceptions are: what ``dataclass`` would write for it takes longer than all of this file.
@dataclass(eq=False, repr=False)
class InvalidInput(DagschedError):
    """Something the author or caller wrote breaks a rule. Printed as one line."""

    where: str
    """File, DAG or step the input came from."""
    field: str
    """Path of the offending field, e.g. ``steps[3].cores``; may be empty."""
    rule: str
    """The rule, with the value that breaks it."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.field, self.rule) if part)


@dataclass(eq=False, repr=False)
class DoesNotFit(DagschedError):
    """Something is larger than what is there."""

    what: str
    dimension: str
    needed: float
    available: float
    unit: str = ""
    worker: str = ""
    """The one that comes nearest, where no worker has enough; empty: all there are have less together."""

    @property
    def amounts(self) -> str:
        """What is needed and what there is, and where."""
        unit, where = f" {self.unit}" if self.unit else "", f" on worker {self.worker!r}" if self.worker else ""
        return f"needed {self.needed:.10g}{unit}, available {self.available:.10g}{unit}{where}"

    def __str__(self) -> str:
        return f"{self.what} does not fit: {self.dimension} {self.amounts}"


@dataclass(eq=False, repr=False)
class LaunchRefused(DagschedError):
    """A group cannot be launched as things are; the message says what to change."""

    group: str
    reason: str
    remedy: str
    passing: bool = False
    """Whether a later try may find it otherwise, with nothing changed."""

    def __str__(self) -> str:
        return f"{self.group}: {self.reason} ({self.remedy})"


@dataclass(eq=False, repr=False)
class ClusterUnknown(DagschedError):
    """A cluster manager gave no answer that can be read."""

    asked: str
    """Address, or what was asked for."""
    reason: str

    def __str__(self) -> str:
        return f"{self.asked} gave no answer we can read: {self.reason}"
