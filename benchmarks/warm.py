"""Warm applications, from the first launch that leaves one to their end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psutil

from airflow_dagsched.provider.warm.applications import tell_end
from benchmarks.clock import PATIENCE_S, list_warm

WARM = "AIRFLOW__DAGSCHED__WARM"
COLD: Mapping[str, str] = {WARM: ""}
STAYING: Mapping[str, str] = {WARM: "2 minutes"}
"""Longer than what is between two runs; short, should nobody be left to end them."""


@contextmanager
def ended_at_exit() -> Iterator[None]:
    """At the end of the block end all warm applications, and wait until their processes are gone."""
    try:
        yield
    finally:
        folders = [(each, tell_end(each, "the benchmark is over")) for each in list_warm()]
        names = [str(each.folder) for each, _ in folders]
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and any(_names_any(each, names) for each in psutil.process_iter(["cmdline"])):
            time.sleep(0.05)


def _names_any(process: psutil.Process, names: list[str]) -> bool:
    return any(name in argument for name in names for argument in process.info["cmdline"] or ())
