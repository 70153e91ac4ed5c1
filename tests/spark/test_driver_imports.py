"""What a driver loads before it does anything: it costs every start."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = "airflow_dagsched.spark.driver.program"
OWN = 105
"""Modules of this package. Before you raise it: is the new one needed by a group of one step? Else import it late."""
OTHERS = {"concurrent", "graphlib"}
"""Beside what PySpark itself loads: of the standard library."""
CODE = f"import sys, pyspark.sql; print(*sys.modules); import {PROGRAM}; print(*sys.modules)"


def list_loaded() -> set[str]:
    """Modules that the driver program loads, beside those of ``pyspark.sql``."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    before, after = (set(line.split()) for line in done.stdout.splitlines())
    return after - before


def test_a_driver_loads_no_more_than_it_did() -> None:
    loaded = list_loaded()
    own = {name for name in loaded if name.startswith("airflow_dagsched")}
    assert len(own) <= OWN
    assert {name.partition(".")[0] for name in loaded - own} <= {*OTHERS, "pyspark"}
    assert len({name for name in loaded if name.startswith("pyspark")}) <= 4
