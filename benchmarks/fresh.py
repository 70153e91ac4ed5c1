"""Seconds of processor time that lines of Python take in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from statistics import median


def cpu_seconds(before: str, measured: str, repetitions: int) -> float:
    """Median over fresh processes of what ``measured`` takes after ``before``. Raises ``CalledProcessError``."""
    code = f"{before}\nimport time\nbegan = time.process_time()\n{measured}\nprint(time.process_time() - began)"
    return median(_run(code) for _ in range(repetitions))


def _run(code: str) -> float:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])
