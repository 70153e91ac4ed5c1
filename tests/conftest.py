"""No test touches anybody's Airflow: its home is a temporary folder, set before Airflow is imported.

Spark's Python workers are this Python, whichever test starts the session that they all share. Java compiles quickly
and never thoroughly, in sessions and in what a test submits, as in all local applications that are to be short: else
compiling is half of the processor time of Spark's tests. No submit uses, or makes, an archive of classes but those of
the tests of just that: the user's own are none of theirs.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

_HOME = tempfile.mkdtemp(prefix="dagsched-airflow-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = _HOME
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
os.environ["AIRFLOW__DAGSCHED__CLASS_ARCHIVE"] = "off"
