"""What a measurement was made on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("airflow-dagsched", "apache-airflow", "apache-airflow-providers-apache-spark", "pyspark")


def facts() -> dict[str, object]:
    """JSON values: processor, cores, memory, load, versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "load_before": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": _java(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    return subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
