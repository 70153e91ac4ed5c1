"""Class paths, and the jar beside an archive of classes: what of a class path is an author's own."""

from __future__ import annotations

import os
import re

DRIVER_CLASS_PATH, EXECUTOR_CLASS_PATH = "spark.driver.extraClassPath", "spark.executor.extraClassPath"
_UNSIGNED = re.compile(r"/class-archives/[0-9a-f]{24}\.jar$")


def join_class_paths(*paths: str) -> str:
    """One of those that are not empty, the first one first."""
    return os.pathsep.join(filter(None, paths))


def leave_out_unsigned(class_path: str) -> str:
    """A class path without the jar of classes that Spark's own jars have, too."""
    return os.pathsep.join(entry for entry in class_path.split(os.pathsep) if not _UNSIGNED.search(entry))
