"""PySpark as it was installed, compiled, instead of spark-submit's copy: a zip without one compiled file.

Each driver would compile all it imports, every time. This file comes first, so it imports the standard library alone.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, MutableSequence
from pathlib import Path

_VERSION = re.compile(r"""^__version__[^=]*= *["']([^"']+)""", re.MULTILINE)
_PY4J = re.compile(r"py4j-(?P<version>.+)-src\.zip")


def prefer_compiled(path: MutableSequence[str] = sys.path, environment: Mapping[str, str] = os.environ) -> None:
    """Take the zips of ``$SPARK_HOME/python/lib`` out of ``path`` where the same is there as files."""
    home = environment.get("SPARK_HOME")
    if not home:
        return
    lib = Path(home, "python", "lib")
    for entry in [entry for entry in path if Path(entry).parent == lib]:
        at = path.index(entry)
        path[at : at + 1] = _replace_zip(Path(home), Path(entry), path)


def _replace_zip(home: Path, entry: Path, path: MutableSequence[str]) -> list[str]:
    """What is on the path instead."""
    installed = home.parent  # pip puts the zips into the package that they are a copy of
    is_installed = str(installed) in path and _is_of(home, installed)
    if entry.name == "pyspark.zip" and not is_installed:
        unpacked = home / "python"  # a Spark that was downloaded has it there
        return [str(unpacked if _is_of(home, unpacked) else entry)]
    # Where installed packages come on the path, they stay: never before the author's, or Python's, own modules.
    is_same = is_installed and (entry.name == "pyspark.zip" or _has_py4j(installed, entry.name))
    return [] if is_same else [str(entry)]


def _is_of(home: Path, folder: Path) -> bool:
    """Whether the PySpark in ``folder`` is of the version that the jars of ``home`` are."""
    try:
        found = _VERSION.search((folder / "pyspark" / "version.py").read_text("utf-8"))
    except OSError:
        return False
    return found is not None and any((home / "jars").glob(f"spark-core_*-{found[1]}.jar"))


def _has_py4j(folder: Path, name: str) -> bool:
    match = _PY4J.fullmatch(name)
    return match is not None and (folder / f"py4j-{match['version']}.dist-info").is_dir()
