"""The manifest with its secrets, and the steps' calls, each pickled alone: one that cannot be read fails alone."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Mapping
from typing import Any

import pyspark.cloudpickle

from airflow_dagsched.launch.protocol.manifest import PAYLOAD_KEY, SECRETS_KEY
from airflow_dagsched.launch.protocol.payload import Call
from airflow_dagsched.spark.steps.call_step import StepFault


class Payload:
    """Calls by step id, and by ``repeat:<id>`` the condition that ends a block."""

    def __init__(self, calls: Mapping[str, Call], faults: Mapping[str, StepFault]) -> None:
        self._calls = calls
        self._faults = faults

    def __contains__(self, key: str) -> bool:
        return key in self._calls or key in self._faults

    def get_call(self, key: str) -> Call:
        """The call. Raises ``StepFault`` if it cannot be unpickled here."""
        if key in self._faults:
            raise self._faults[key]
        return self._calls[key]

    def list_arguments(self) -> list[Any]:
        """All that was rendered into the calls."""
        return [[call.args, call.kwargs, call.sql] for call in self._calls.values()]


def read_payload(data: bytes) -> tuple[str, list[str], Payload]:
    """The manifest, the secrets to mask and the payload in ``data``, as the launch task wrote them for this driver
    alone.
    """
    # Airflow's side pickles with cloudpickle, which no cluster needs to have: PySpark carries a copy.
    sys.modules.setdefault("cloudpickle", pyspark.cloudpickle)
    sys.modules.setdefault("cloudpickle.cloudpickle", pyspark.cloudpickle.cloudpickle)
    calls: dict[str, Call] = {}
    faults: dict[str, StepFault] = {}
    parts = pickle.loads(data)
    manifest, secrets = parts.pop(PAYLOAD_KEY).decode(), json.loads(parts.pop(SECRETS_KEY))
    for key, pickled in parts.items():
        try:
            # One by one: a step whose module is missing here fails alone, and in its own turn.
            calls[key] = pickle.loads(pickled)
        except Exception as error:  # noqa: BLE001 - an author's module runs here
            faults[key] = StepFault(_explain_unreadable(error))
    return manifest, secrets, Payload(calls, faults)


def _explain_unreadable(error: Exception) -> str:
    return (
        f"cannot be unpickled in the driver program: {type(error).__name__}: {error} "
        "(install what it imports where Spark runs, or ship it with py_files)"
    )
