"""No test touches anybody's Airflow: its home is a temporary folder, set before Airflow is imported.

Spark's Python workers are this Python, whichever test starts the session that they all share. Java compiles quickly
and never thoroughly, in sessions and in what a test submits, as in all local applications that are to be short: else
compiling is half of the processor time of Spark's tests. The archive of classes that make has put beside this Python
halves each start; no submit uses, or makes, one of the user's own but those of the tests of just that.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from airflow_dagsched.launch.class_archive.recipe import join_options, list_using_options
from airflow_dagsched.launch.managers.short_java import LIGHT_COMPILER

_HOME = tempfile.mkdtemp(prefix="dagsched-airflow-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = _HOME
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_CLASSES = Path(sys.prefix) / "classes.jsa"
_ARCHIVE = list_using_options("dynamic", str(_CLASSES)) if _CLASSES.exists() else ()
os.environ.setdefault("SPARK_SUBMIT_OPTS", join_options(LIGHT_COMPILER, _ARCHIVE))
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
os.environ["AIRFLOW__DAGSCHED__CLASS_ARCHIVE"] = "off"
