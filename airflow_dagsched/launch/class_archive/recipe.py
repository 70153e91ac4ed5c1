"""How Java is told to write an archive of classes, and to use it.

==========  =================================  ====================================================
Java        kind                               its file
==========  =================================  ====================================================
13 to 24    ``dynamic``: on top of Java's own  classes as they were parsed and verified
25, newer   ``aot``                            the same, linked, with profiles of what was compiled
==========  =================================  ====================================================
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Literal

Kind = Literal["dynamic", "aot"]

DRIVER_DEFAULT, DRIVER_EXTRA = "spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"
EXECUTOR_DEFAULT, EXECUTOR_EXTRA = "spark.executor.defaultJavaOptions", "spark.executor.extraJavaOptions"
ENVIRONMENT = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables with options of a driver's Java."""
# Else Java says on standard output that an archive does not fit: events are read there.
_QUIET: Mapping[Kind, tuple[str, ...]] = {
    "dynamic": ("-Xlog:cds=off", "-Xlog:cds+dynamic=off"),
    "aot": ("-Xlog:aot=off", "-Xlog:cds=off"),
}
_WRITE: Mapping[Kind, str] = {"dynamic": "-XX:ArchiveClassesAtExit", "aot": "-XX:AOTCacheOutput"}
_READ: Mapping[Kind, str] = {"dynamic": "-XX:SharedArchiveFile", "aot": "-XX:AOTCache"}
_DEMAND: Mapping[Kind, str] = {"dynamic": "-Xshare:on", "aot": "-XX:AOTMode=on"}
# What says which archive there is, or makes Java take none.
_SAYS = re.compile(r"-XX:(SharedArchiveFile|ArchiveClassesAtExit|AOT\w+|[+-]AutoCreateSharedArchive)\b|-Xshare:")

_SAYS_REPORT = re.compile(r"-XX:ErrorFile=")


def choose_kind(version: int) -> Kind | None:
    """What kind Java ``version`` has; None: none that pays."""
    if version < 13:
        return None
    return "dynamic" if version < 25 else "aot"


def list_using_options(kind: Kind, file: str) -> tuple[str, ...]:
    """Java options: take the archive where it fits, and say nothing where it doesn't."""
    return (f"{_READ[kind]}={file}", *_QUIET[kind])


def list_report_options(file: str) -> tuple[str, ...]:
    """Java options: write what is seen of a crash to ``file``, over that of the one before it.

    Else each leaves a file of its own in the working folder.
    """
    return (f"-XX:ErrorFile={file.replace('%', '%%')}",)  # %p would be the number of its process


def list_executor_options(kind: Kind, file: str) -> tuple[str, ...]:
    """Java options of executors, whose hosts may lack the file, or have another Java: then they start without."""
    return ("-XX:+IgnoreUnrecognizedVMOptions", f"{_READ[kind]}={file}", *_QUIET["dynamic"])


def list_making_options(kind: Kind, file: str) -> tuple[str, ...]:
    """Java options: write the archive as Java ends."""
    # The quick compiler: what is compiled meanwhile is not kept.
    return ("-XX:TieredStopAtLevel=1", f"{_WRITE[kind]}={file}")


def list_proving_options(kind: Kind, file: str) -> tuple[str, ...]:
    """Java options: end at once, with an error, where the archive can't be used."""
    return (f"{_READ[kind]}={file}", _DEMAND[kind])


def names_archive(options: Iterable[str]) -> bool:
    """Whether texts of Java options say something of archives already: then that counts."""
    return any(_SAYS.search(text) for text in options)


def names_report(options: Iterable[str]) -> bool:
    """Whether texts of Java options say already where reports of crashes go."""
    return any(_SAYS_REPORT.search(text) for text in options)


def join_options(before: str, options: Iterable[str]) -> str:
    """A text of Java options, as Spark splits it, with more of them."""
    return " ".join(filter(None, [before, *map(shlex.quote, options)]))
