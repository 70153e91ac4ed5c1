"""spark-submit as a launch task calls it: with the settings of a plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark

SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
APPLICATION = Path(__file__).with_name("application.py")
SMALL = {"spark.driver.memory": "512m", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}


def start(
    master: str, conf: Mapping[str, str], *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """spark-submit of the test's application."""
    settings = [part for name, value in {**conf, **SMALL}.items() for part in ("--conf", f"{name}={value}")]
    return subprocess.Popen(
        [str(SPARK_SUBMIT), "--master", master, *settings, str(APPLICATION), *arguments],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(submitted: subprocess.Popen[str], within_s: float = 180.0) -> dict[str, Any]:
    """What the application printed last; it has ended well, in time."""
    try:
        out, err = submitted.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        submitted.kill()
        out, err = submitted.communicate()
        raise AssertionError(f"not within {within_s:g} s: {err[-4000:]}") from None
    assert submitted.returncode == 0, err[-4000:]
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found
