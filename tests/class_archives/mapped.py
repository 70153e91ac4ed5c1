"""A Spark application for tests: which archives of classes its Java has mapped, as JSON.

``spark-submit mapped.py [fail|crash]``: counts a few rows; ``fail``: and ends badly; ``crash``: as its Python crashes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

if __name__ == "__main__":
    count = SparkSession.builder.getOrCreate().range(3).count()
    if sys.argv[1:] == ["crash"]:
        os.kill(os.getpid(), signal.SIGSEGV)
    # In client mode Java has started this program.
    lines = Path(f"/proc/{os.getppid()}/maps").read_text().splitlines()
    archives = {Path(line.split()[-1]).name for line in lines if line.endswith((".jsa", ".aot"))}
    print(json.dumps({"count": count, "mapped": sorted(archives), "spark": "pyspark.zip" in str(sys.path)}))
    sys.exit(sys.argv[1:] == ["fail"])
