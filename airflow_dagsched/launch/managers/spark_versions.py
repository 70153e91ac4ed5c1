"""Which versions of Spark are fit to run steps, and why the others are not.

A version is text as Spark says it: ``4.2.1``, also ``4.3.0-preview1`` or ``4.1.2-vendor-7``. What counts is its line
(major.minor) and, where a single release is broken, the number in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

OLDEST, TOO_NEW = (4, 0), (5, 0)
BROKEN = {
    "4.2.0": "a Python function that reads kept rows never ends in it (seen: spark.range(5).persist() read by a UDF)",
}
"""Single releases that cannot be used, and what was seen."""
FIT = "4.2.1"
"""What to take instead: the version that all tests run on."""

_NUMBER = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_CORE = re.compile(r"spark-core_[\d.]+-(?P<version>.+)\.jar")


@dataclass(frozen=True, slots=True)
class Unfit:
    """A version that must run no step."""

    version: str
    reason: str

    @property
    def remedy(self) -> str:
        """What to install instead."""
        return f"pip install pyspark=={FIT}; where SPARK_HOME is set, let it name a Spark {FIT}"

    def __str__(self) -> str:
        return f"{self.reason} ({self.remedy})"


def judge_version(version: str) -> Unfit | None:
    """Why ``version`` must run no step; None if it may, and of one that is no version number, which nobody knows."""
    number = _NUMBER.match(version)
    if number is None:
        return None
    line = (int(number[1]), int(number[2]))
    if not OLDEST <= line < TOO_NEW:
        return Unfit(version, f"Spark {version} is not supported: steps run on 4.0 or newer, below 5")
    seen = BROKEN.get(number[0])
    return None if seen is None else Unfit(version, f"Spark {version} is refused: {seen}")


def find_jar_version(names: Iterable[str]) -> str | None:
    """The version of a Spark, from the file names in its folder ``jars``; None where they don't tell."""
    versions = {match["version"] for name in names if (match := _CORE.fullmatch(name))}
    # Of two side by side, nobody knows which one Java loads.
    return versions.pop() if len(versions) == 1 else None
